#include "lib/net/launch/exit_messages.h"

#include "tests/catch.h"

namespace gxp {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("only the line with which gxp fails is kept", "[net]") {
  ExitMessages words;
  CHECK_FALSE(words.take(0, "gxp[rank 0] error transport: lost\n"));
  CHECK_FALSE(words.take(0, "loss 3.9\n"));
  CHECK(words.take(0, "gxp: error: no luck\n"));
  CHECK(words.take_new(0) == Lines{"gxp[rank 0] error no luck\n"});
  CHECK(words.has(0));
  CHECK_FALSE(words.has(1));
  CHECK(words.take_new(0).empty());
}

TEST_CASE("a cause is told once, with all who gave it, the culprit's first", "[net]") {
  ExitMessages words;
  for (const int rank : {3, 0}) words.take(rank, "gxp: error: rank 2: it is gone\n");
  words.take(1, "gxp: error: disk full\n");
  CHECK(words.take_new(1) ==
        Lines{"gxp[rank 1] error disk full\n", "gxp[rank 0, 3] error rank 2: it is gone\n"});
  words.take(4, "gxp: error: rank 2: it is gone\n");
  words.take(5, "gxp: error: something else\n");
  CHECK(words.take_new(1) == Lines{"gxp[rank 5] error something else\n"});
}

TEST_CASE("a rank that lost another says which", "[net]") {
  ExitMessages words;
  words.take(0, "gxp: error: rank 12: it is gone\n");
  words.take(1, "gxp: error: rank 2 is not there\n");
  words.take(3, "gxp: error: join rank 0 at here:29500: no answer\n");
  CHECK(words.blamed_by(0) == 12);
  CHECK(words.blamed_by(3) == 0);
  CHECK_FALSE(words.blamed_by(1));
  CHECK_FALSE(words.blamed_by(2));
}

TEST_CASE("who quotes a rank that speaks for itself is not repeated", "[net]") {
  ExitMessages words;
  words.take(0, "gxp: error: rank 1: disk full\n");
  words.take(1, "gxp: error: disk full\n");
  words.take(2, "gxp: error: rank 12: disk full\n");
  CHECK(words.take_new(1) ==
        Lines{"gxp[rank 1] error disk full\n", "gxp[rank 2] error rank 12: disk full\n"});
}

TEST_CASE("that a killed rank is lost is not asked once more; what it did last is told", "[net]") {
  ExitMessages words;
  words.take(0, "gxp: error: rank 1: its connection ended without a goodbye; was it killed?\n");
  words.take(2, "gxp: error: rank 1: it ended; was it killed? Its last operation: barrier 7\n");
  words.take(3, "gxp: error: rank 4: it ended; was it killed?\n");
  CHECK(words.take_new(1, true) ==
        Lines{"gxp[rank 2] error rank 1: Its last operation: barrier 7\n",
              "gxp[rank 3] error rank 4: it ended; was it killed?\n"});
}

}  // namespace
}  // namespace gxp

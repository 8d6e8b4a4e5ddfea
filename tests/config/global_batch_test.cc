#include "lib/config/global_batch.h"

#include "lib/base/error.h"
#include "tests/catch.h"

using namespace gxp;

TEST_CASE("the global batch decides over the accumulation, or is refused with the nearest",
          "[config]") {
  // Rows of a step, rows of a micro-batch, ranks, given accumulation; then what follows.
  const auto [global, micro, ranks, given, accumulation, refusal] =
      GENERATE(table<int, int, int, int, int, std::string>(
          {{0, 4, 3, 5, 5, ""},
           {24, 4, 3, 1, 2, ""},
           {24, 4, 6, 1, 1, ""},
           {24, 4, 1, 1, 6, ""},
           {24, 4, 4, 1, 0, "4 x 4 = 16; the nearest are 16 and 32"},
           {8, 4, 3, 1, 0, "4 x 3 = 12; the nearest is 12"},
           {1 << 30, 1 << 20, 1 << 20, 1, 0, "= 1099511627776; the nearest is 1099511627776"},
           {24, 4, 3, 2, 0, "train.grad_accum 2: train.global_batch 24 decides it"}}));
  RunConfig run;
  run.train.global_batch = global;
  run.train.micro_batch = micro;
  run.train.grad_accum = given;
  CAPTURE(global, micro, ranks, given);
  try {
    const RunConfig settled = with_global_batch(run, ranks);
    CHECK(settled.train.grad_accum == accumulation);
    CHECK(refusal.empty());
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    CHECK_FALSE(refusal.empty());
    CHECK(contains(error.what(), refusal));
  }
}

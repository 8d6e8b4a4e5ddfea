#include "lib/collective/gather_texts.h"

#include <limits>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/transport/faulty.h"

namespace gxp {
namespace {

using Texts = std::vector<std::string>;

std::string text_of(int rank) { return std::string(size_t(rank) * 7, char('a' + rank)); }

// What rank 1 gathers of three ranks when a bit in the middle of message `message` of rank 0 is
// flipped on its way; the error's text if it gathers nothing.
Texts gather_altered(uint64_t message) {
  InprocWorld world(3);
  const auto make = [&](int rank) -> std::unique_ptr<Transport> {
    auto inner = world.make_transport(rank);
    if (rank != 0) return inner;
    const FaultPlan plan{.fault = Fault::kCorrupt, .message = message};
    return std::make_unique<FaultyTransport>(std::move(inner), plan);
  };
  const CommunicatorOptions quick{.timeout = std::chrono::milliseconds(300)};
  try {
    return run_ranks_over(
               make, 3, [](Communicator& c) { return gather_texts(c, "text"); }, quick)
        .at(1);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kPeer);
    return {error.what()};
  }
}

}  // namespace

TEST_CASE("texts of different lengths are gathered in order of rank", "[collective]") {
  const int world_size = GENERATE(1, 2, 5);
  const auto gathered =
      run_ranks(world_size, [](Communicator& c) { return gather_texts(c, text_of(c.rank())); });
  for (const Texts& texts : gathered) {
    REQUIRE(int(texts.size()) == world_size);
    for (int rank = 0; rank < world_size; ++rank) CHECK(texts[size_t(rank)] == text_of(rank));
  }
}

TEST_CASE("texts that are all empty are gathered", "[collective]") {
  const auto gathered = run_ranks(3, [](Communicator& c) { return gather_texts(c, ""); });
  CHECK(gathered == std::vector<Texts>(3, Texts(3)));
}

TEST_CASE("a size that no text has is refused, and the rank that announced it is named",
          "[collective]") {
  constexpr auto kMost = int64_t(kMaxGatheredBytes);
  // The second overflows where a chunk is as large as the largest size and eight bytes.
  const auto size = GENERATE(int64_t{-1}, std::numeric_limits<int64_t>::max() - 7,
                             std::numeric_limits<int64_t>::min(), kMost - 2, int64_t{1} << 62);
  const std::vector<int64_t> sizes = {3, size, 5};
  try {
    text_offsets(sizes);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kPeer);
    CHECK(contains(error.what(), fmt::format("rank 1 announces {} bytes", size)));
  }
  CHECK(text_offsets(std::vector<int64_t>{3, kMost - 8, 5}).back() == kMaxGatheredBytes);
}

TEST_CASE("sizes and texts that are altered on their way end in an error or in other texts",
          "[collective]") {
  const uint64_t message = GENERATE(0, 1, 2, 3);
  const Texts texts = gather_altered(message);
  CAPTURE(message, texts);
  if (message == 0) CHECK(contains(texts.at(0), "rank 0 announces 4294967300 bytes"));
  CHECK((texts.size() == 1 || texts.size() == 3));
}

}  // namespace gxp

#include "lib/data/sample_order.h"

#include <algorithm>
#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

std::vector<uint64_t> epoch_of(const SampleOrder& order, uint64_t epoch, uint64_t count) {
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < count; ++i) samples.push_back(order.at(epoch * count + i));
  return samples;
}

}  // namespace

TEST_CASE("every epoch holds each sample exactly once", "[data]") {
  const auto kind = GENERATE(RowOrder::kSequential, RowOrder::kShuffled);
  const uint64_t count = GENERATE(1, 2, 3, 4, 5, 15, 16, 17, 97, 1000, 4096, 65537);
  const SampleOrder order(kind, 7, count);
  for (const uint64_t epoch : {0, 1, 5}) {
    auto samples = epoch_of(order, epoch, count);
    std::sort(samples.begin(), samples.end());
    for (uint64_t i = 0; i < count; ++i) REQUIRE(samples[i] == i);
  }
}

TEST_CASE("the sequential order is the order of the files", "[data]") {
  const SampleOrder order(RowOrder::kSequential, 7, 10);
  CHECK(order.at(3) == 3);
  CHECK(order.at(23) == 3);
}

TEST_CASE("epochs and seeds have orders of their own", "[data]") {
  const SampleOrder order(RowOrder::kShuffled, 7, 100);
  CHECK(epoch_of(order, 0, 100) != epoch_of(order, 1, 100));
  CHECK(epoch_of(order, 0, 100) != epoch_of(SampleOrder(RowOrder::kShuffled, 8, 100), 0, 100));
}

TEST_CASE("a shuffled sample is at any position with equal chance", "[data]") {
  constexpr uint64_t kCount = 10;
  constexpr int kEpochs = 10000;
  std::vector<int> hits(kCount * kCount);
  const SampleOrder order(RowOrder::kShuffled, 1, kCount);
  for (uint64_t i = 0; i < kCount * kEpochs; ++i) ++hits[i % kCount * kCount + order.at(i)];
  // Expected 1000 each with a standard deviation of 30: five of them leave nothing to chance.
  for (const int hit : hits) CHECK(std::abs(hit - 1000) < 150);
}

TEST_CASE("the shuffled order is frozen, so that old runs resume", "[data]") {
  using Samples = std::vector<uint64_t>;
  CHECK(epoch_of(SampleOrder(RowOrder::kShuffled, 1, 10), 0, 10) ==
        Samples{4, 8, 9, 3, 1, 7, 0, 6, 2, 5});
  CHECK(epoch_of(SampleOrder(RowOrder::kShuffled, 42, 10), 3, 10) ==
        Samples{1, 5, 9, 3, 7, 2, 4, 0, 8, 6});
  const SampleOrder large(RowOrder::kShuffled, 1, 1'000'000'007);
  CHECK(Samples{large.at(0), large.at(1), large.at(999'999'999'999)} ==
        Samples{158860258, 848687616, 859922838});
}

}  // namespace gxp

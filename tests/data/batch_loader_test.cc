#include "lib/data/batch_loader.h"

#include <chrono>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/data/token_samples.h"

namespace gxp {
namespace {

constexpr int kSequence = 2;

// The samples of the next micro-batch: sample i of the file below has the token 3 * i first.
std::vector<int> next_samples(BatchLoader& loader, int rows) {
  const Shape shape{size_t(rows), kSequence};
  std::vector<int32_t> tokens(shape.count()), targets(shape.count());
  loader.next({.tokens = Tensor(memory_of(tokens), DType::kI32, shape),
               .targets = Tensor(memory_of(targets), DType::kI32, shape)},
              Deadline::after(std::chrono::seconds(30)));
  std::vector<int> samples;
  for (size_t i = 0; i < tokens.size(); i += kSequence) {
    CHECK(targets[i] == tokens[i] + 1);
    CHECK(targets[i + 1] == tokens[i] + 2);
    samples.push_back(tokens[i] / 3);
  }
  return samples;
}

Dataset counting_dataset(const TokenDirectory& dir, int samples, int vocab_size = 1 << 20) {
  return dataset_of({dir.write("a.i32", counting_tokens(size_t(samples) * (kSequence + 1)))},
                    kSequence, vocab_size);
}

// What `world_size` ranks read from position `begin` to `end`, in the order of positions.
std::vector<int> read_all(const Dataset& data, const SampleOrder& order, int world_size, int rows,
                          uint64_t begin, uint64_t end) {
  std::vector<std::unique_ptr<BatchLoader>> loaders;
  for (int rank = 0; rank < world_size; ++rank) {
    loaders.push_back(
        std::make_unique<BatchLoader>(data, order, BatchShare{rank, world_size, rows}, 2));
    loaders.back()->start(begin);
  }
  std::vector<int> samples;
  while (begin + samples.size() < end) {
    for (auto& loader : loaders) {
      const auto batch = next_samples(*loader, rows);
      samples.insert(samples.end(), batch.begin(), batch.end());
    }
  }
  return samples;
}

}  // namespace

TEST_CASE("ranks together read the order, whatever the world size and where they resume",
          "[data]") {
  const TokenDirectory dir;
  const Dataset data = counting_dataset(dir, 31);
  const auto kind = GENERATE(RowOrder::kSequential, RowOrder::kShuffled);
  const int world_size = GENERATE(1, 2, 3, 4);
  const uint64_t base = GENERATE(0, 24);
  const SampleOrder order(kind, 5, data.sample_count());
  const auto samples = read_all(data, order, world_size, 2, base, base + 72);
  REQUIRE(samples.size() == 72);
  for (size_t i = 0; i < samples.size(); ++i) REQUIRE(uint64_t(samples[i]) == order.at(base + i));
}

TEST_CASE("every rank knows how many targets count in a step, of all ranks and micro-batches",
          "[data]") {
  const TokenDirectory dir;
  constexpr int kSamples = 17;
  std::vector<int32_t> elements;
  for (int sample = 0; sample < kSamples; ++sample) {
    const int first = 3 * sample;  // the second target counts in every third, the first never
    elements.insert(elements.end(), {first, first + 1, first + 2});
    elements.insert(elements.end(), {first, kNoLabel, sample % 3 == 0 ? first + 2 : kNoLabel});
  }
  const Dataset data = dataset_of(
      {dir.write_numpy("a.npy", "<i4", fmt::format("({}, 2, 3)", kSamples), elements, 1)},
      kSequence, 1 << 20);
  const int world_size = GENERATE(1, 2, 3), per_step = GENERATE(1, 2, 4);
  const bool in_a_row = GENERATE(false, true);
  const uint64_t begin = GENERATE(0, 24);
  CAPTURE(world_size, per_step, in_a_row, begin);
  const SampleOrder order(RowOrder::kShuffled, 5, kSamples);
  const int rows = 2, together = world_size * rows * per_step;
  for (int rank = 0; rank < world_size; ++rank) {
    BatchLoader loader(data, order, {rank, world_size, rows, in_a_row ? per_step : 1, per_step});
    loader.start(begin);
    std::vector<int32_t> tokens(size_t(rows) * kSequence), targets(tokens.size());
    const Shape shape{size_t(rows), kSequence};
    for (int micro = 0; micro < 3 * per_step; ++micro) {
      loader.next({.tokens = Tensor(memory_of(tokens), DType::kI32, shape),
                   .targets = Tensor(memory_of(targets), DType::kI32, shape)},
                  Deadline::after(std::chrono::seconds(30)));
      uint64_t expected = 0;
      for (int i = 0; i < together; ++i)
        expected += order.at(begin + uint64_t(micro / per_step * together + i)) % 3 == 0;
      REQUIRE(loader.step_targets() == expected);
    }
  }
}

TEST_CASE("start drops what was read ahead and begins anew", "[data]") {
  const TokenDirectory dir;
  const Dataset data = counting_dataset(dir, 20);
  BatchLoader loader(data, SampleOrder(RowOrder::kSequential, 1, 20), {1, 2, 2});
  loader.start(0);
  CHECK(next_samples(loader, 2) == std::vector<int>{2, 3});
  CHECK(next_samples(loader, 2) == std::vector<int>{6, 7});
  loader.start(8);
  CHECK(next_samples(loader, 2) == std::vector<int>{10, 11});
}

TEST_CASE("a bad token surfaces in its own micro-batch, then and again", "[data]") {
  const TokenDirectory dir;
  const Dataset data = counting_dataset(dir, 6, 14);  // sample 4 holds tokens 12, 13, 14
  BatchLoader loader(data, SampleOrder(RowOrder::kSequential, 1, 6), {0, 1, 2});
  loader.start(0);
  CHECK(next_samples(loader, 2) == std::vector<int>{0, 1});
  CHECK(next_samples(loader, 2) == std::vector<int>{2, 3});
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_WITH(next_samples(loader, 2),
                      Catch::Matchers::Contains("token 14 at position 14"));
}

}  // namespace gxp

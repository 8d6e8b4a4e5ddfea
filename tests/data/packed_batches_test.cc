// Micro-batches of rows that hold several documents.
#include <algorithm>
#include <chrono>

#include "lib/data/batch_loader.h"
#include "tests/catch.h"
#include "tests/data/document_dataset.h"
#include "tests/data/token_samples.h"

namespace gxp {
namespace {

using Ids = std::vector<int32_t>;

constexpr int kPackedSequence = 5;
const DocumentLengths kPackedRows = {{2, 1, 3}, {6}, {4, 2}, {1, 1, 1, 1, 1, 1}, {5, 1}};

struct PackedBatch {
  Ids tokens, targets, begins;
};

PackedBatch next_packed(BatchLoader& loader, int rows, bool documents) {
  const Shape shape{size_t(rows), kPackedSequence};
  PackedBatch batch{Ids(shape.count()), Ids(shape.count()), Ids(shape.count(), 99)};
  const auto tensor = [&](Ids& ids) { return Tensor(memory_of(ids), DType::kI32, shape); };
  loader.next(
      {tensor(batch.tokens), tensor(batch.targets), documents ? tensor(batch.begins) : Tensor()},
      Deadline::after(std::chrono::seconds(30)));
  return batch;
}

// Row i of the file has the tokens 6 i, 6 i + 1, ...
std::string counting_rows(const TokenDirectory& dir) {
  return dir.write("a.i32", counting_tokens(kPackedRows.size() * (kPackedSequence + 1)));
}

// What is expected of row `sample`, behind each other.
void append(PackedBatch& expected, size_t sample) {
  const Ids begins = begins_of({kPackedRows[sample]});
  for (int i = 0; i < kPackedSequence; ++i) {
    const int token = int(sample) * (kPackedSequence + 1) + i;
    expected.tokens.push_back(token);
    expected.targets.push_back(begins[size_t(i) + 1] == i + 1 ? kNoLabel : token + 1);
    expected.begins.push_back(begins[size_t(i)]);
  }
}

}  // namespace

TEST_CASE("rows of documents say where these begin, whose first tokens are no targets", "[data]") {
  const TokenDirectory dir;
  const DocumentDataset data(counting_rows(dir), RunEncoder(run_of_rows(kPackedSequence, 100)),
                             kPackedRows);
  const int world_size = GENERATE(1, 2), per_step = GENERATE(1, 3);
  const SampleOrder order(RowOrder::kShuffled, 5, kPackedRows.size());
  const uint64_t in_step = uint64_t(world_size * per_step) * 2;
  for (int rank = 0; rank < world_size; ++rank) {
    BatchLoader loader(data, order,
                       {.rank = rank,
                        .world_size = world_size,
                        .rows = 2,
                        .per_step = per_step,
                        .documents = true});
    loader.start(3);
    for (uint64_t micro = 0; micro < 9; ++micro) {
      PackedBatch expected, step;
      const uint64_t first = 3 + (micro * uint64_t(world_size) + uint64_t(rank)) * 2;
      for (const uint64_t position : {first, first + 1}) append(expected, order.at(position));
      const uint64_t begin = 3 + micro / uint64_t(per_step) * in_step;
      for (uint64_t i = 0; i < in_step; ++i) append(step, order.at(begin + i));
      const PackedBatch batch = next_packed(loader, 2, true);
      CHECK(batch.tokens == expected.tokens);
      CHECK(batch.targets == expected.targets);
      CHECK(batch.begins == expected.begins);
      const auto counted = std::ranges::count_if(step.targets, [](int id) { return id >= 0; });
      CHECK(loader.step_targets() == uint64_t(counted));
    }
  }
}

TEST_CASE("rows of documents that are not kept apart are read as one text", "[data]") {
  const TokenDirectory dir;
  const std::string path = counting_rows(dir);
  const DocumentDataset documents(path, RunEncoder(run_of_rows(kPackedSequence, 100)), kPackedRows);
  const Dataset plain = dataset_of({path}, kPackedSequence, 100);
  const SampleOrder order(RowOrder::kSequential, 5, kPackedRows.size());
  const BatchShare share = {.rows = 5, .per_step = 1};
  BatchLoader loader(documents, order, share), expected(plain, order, share);
  for (BatchLoader* each : {&loader, &expected}) each->start(0);
  CHECK(next_packed(loader, 5, false).targets == next_packed(expected, 5, false).targets);
  CHECK(loader.step_targets() == 25);
}

TEST_CASE("rows without documents are one each, where others are kept apart", "[data]") {
  const TokenDirectory dir;
  const Dataset data = dataset_of({counting_rows(dir)}, kPackedSequence, 100);
  BatchLoader loader(data, SampleOrder(RowOrder::kSequential, 5, kPackedRows.size()),
                     {.rows = 5, .per_step = 1, .documents = true});
  loader.start(0);
  const PackedBatch batch = next_packed(loader, 5, true);
  CHECK(batch.begins == Ids(25));
  CHECK(std::ranges::count(batch.targets, kNoLabel) == 0);
  CHECK(loader.step_targets() == 25);
}

}  // namespace gxp

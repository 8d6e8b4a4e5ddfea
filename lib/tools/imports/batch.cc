#include "lib/tools/imports/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace gxp {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;

// "64 is not micro 3 x accumulation 2 x 8 ranks", if that is so.
void check_product(ImportedBatch& batch) {
  const BatchTriple& sizes = batch.sizes;
  const int64_t ranks = *batch.ranks;
  if (sizes.micro * sizes.grad_accum * ranks == sizes.global) return;
  batch.error = fmt::format("{} is not micro {} x accumulation {} x {} ranks", sizes.global,
                            sizes.micro, sizes.grad_accum, ranks);
  batch.nearest = nearest_triples(sizes.global, std::max<int64_t>(1, sizes.micro),
                                  std::max<int64_t>(1, sizes.grad_accum), ranks);
}

bool is_possible(const std::optional<int64_t>& size) {
  return !size || (*size >= 1 && *size <= kLargest);
}

// Of the rows of one rank, with accumulation.
BatchTriple nearest_split(int64_t rows, int64_t micro, int64_t grad_accum) {
  BatchTriple best;
  int64_t least = -1;
  const auto consider = [&](int64_t size) {
    const int64_t distance = std::abs(size - micro) + std::abs(rows / size - grad_accum);
    if (least >= 0 && distance >= least) return;
    least = distance;
    best = {.micro = size, .grad_accum = rows / size};
  };
  for (int64_t size = 1; size <= rows / size; ++size) {
    if (rows % size != 0) continue;
    consider(size);
    consider(rows / size);
  }
  return best;
}

}  // namespace

std::vector<BatchTriple> nearest_triples(int64_t global, int64_t micro, int64_t grad_accum,
                                         int64_t ranks) {
  std::vector<int64_t> totals;
  const int64_t below = std::max<int64_t>(1, global / ranks);
  for (int64_t rows = std::max<int64_t>(1, below - 3); rows <= below + 3; ++rows)
    totals.push_back(rows * ranks);
  std::ranges::stable_sort(totals, {}, [&](int64_t total) { return std::abs(total - global); });
  std::vector<BatchTriple> triples;
  for (size_t i = 0; i < std::min<size_t>(3, totals.size()); ++i) {
    triples.push_back(nearest_split(totals[i] / ranks, micro, grad_accum));
    triples.back().global = totals[i];
  }
  return triples;
}

ImportedBatch solve_batch(const BatchSizes& given) {
  ImportedBatch batch{.ranks = given.ranks};
  BatchTriple& sizes = batch.sizes;
  if (!is_possible(given.global) || !is_possible(given.micro) || !is_possible(given.grad_accum)) {
    batch.error = fmt::format("a batch size is not from 1 to {}", kLargest);
    return batch;
  }
  if (!given.global && !given.micro) {
    batch.error = "neither train_batch_size nor train_micro_batch_size_per_gpu is given";
    return batch;
  }
  sizes = {given.micro.value_or(0), given.grad_accum.value_or(1), given.global.value_or(0)};
  if (sizes.micro * sizes.grad_accum > kLargest) {  // so that no product below overflows
    batch.error = fmt::format("micro {} x accumulation {} is above {}", sizes.micro,
                              sizes.grad_accum, kLargest);
    return batch;
  }
  if (!given.global) {
    if (batch.ranks) sizes.global = sizes.micro * sizes.grad_accum * *batch.ranks;
    return batch;
  }
  if (!batch.ranks && given.micro && given.grad_accum)
    batch.ranks = std::max<int64_t>(1, sizes.global / (sizes.micro * sizes.grad_accum));
  if (!batch.ranks) {
    batch.error = fmt::format(
        "a total of {} rows is split over the ranks, whose number is not known: give --nproc",
        sizes.global);
    return batch;
  }
  if (!given.micro) sizes.micro = sizes.global / *batch.ranks / sizes.grad_accum;
  if (!given.grad_accum && given.micro)
    sizes.grad_accum = sizes.global / sizes.micro / *batch.ranks;
  check_product(batch);
  return batch;
}

}  // namespace gxp

#include "lib/estimate/padding.h"

#include <array>
#include <functional>
#include <numeric>

namespace gxp {
namespace {

uint64_t elements(const TensorShape& shape) {
  return std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<>());
}

// What lifts `count` to a multiple of `step`.
uint64_t lift(uint64_t count, uint64_t step) { return (step - count % step) % step; }

template <class PerTensor>
uint64_t sum_over_tensors(const PublishedModel& model, PerTensor per_tensor) {
  uint64_t sum = 0;
  for (const auto& unit : unit_shapes(model)) {
    for (const TensorShape& shape : unit) sum += per_tensor(shape);
  }
  return sum;
}

uint64_t pad_rows(const PublishedModel& model, uint64_t ranks) {
  return sum_over_tensors(model, [=](const TensorShape& shape) {
    return lift(shape[0], ranks) * (elements(shape) / shape[0]);
  });
}

uint64_t pad_tensors(const PublishedModel& model, uint64_t ranks) {
  return sum_over_tensors(model,
                          [=](const TensorShape& shape) { return lift(elements(shape), ranks); });
}

uint64_t pad_model(const PublishedModel& model, uint64_t ranks) {
  return lift(parameter_count(model), 2 * ranks);
}

uint64_t pad_units(const PublishedModel& model, uint64_t ranks) {
  uint64_t sum = 0;
  for (const auto& unit : unit_shapes(model)) {
    uint64_t count = 0;
    for (const TensorShape& shape : unit) count += elements(shape);
    sum += lift(count, 128 * ranks);
  }
  return sum;
}

constexpr std::array kLayouts = {
    ShardLayout{"rows", "each tensor by rows of its first dimension, as FSDP2", pad_rows},
    ShardLayout{"tensors", "each tensor by elements, as DeepSpeed ZeRO-3", pad_tensors},
    ShardLayout{"whole model", "all elements in a row, as DeepSpeed ZeRO-1 and 2", pad_model},
    ShardLayout{"units", "each unit's elements in a row, 128 aligned", pad_units},
};

}  // namespace

std::span<const ShardLayout> shard_layouts() { return kLayouts; }

}  // namespace gxp

#include "lib/tools/planner/padding.h"

#include <array>

namespace gxp {
namespace {

// What lifts `count` to a multiple of `step`.
uint64_t lift(uint64_t count, uint64_t step) { return (step - count % step) % step; }

template <class OfTensor>
uint64_t sum_over(const std::vector<TensorShape>& unit, const OfTensor& of_tensor) {
  uint64_t sum = 0;
  for (const TensorShape& shape : unit) sum += of_tensor(shape);
  return sum;
}

uint64_t pad_rows(const PublishedModel& model, uint64_t ranks) {
  uint64_t sum = 0;
  for (const auto& unit : unit_shapes(model))
    sum += sum_over(unit, [=](const TensorShape& shape) {
      return lift(shape[0], ranks) * (count_of(shape) / shape[0]);
    });
  return sum;
}

uint64_t pad_tensors(const PublishedModel& model, uint64_t ranks) {
  uint64_t sum = 0;
  for (const auto& unit : unit_shapes(model))
    sum += sum_over(unit, [=](const TensorShape& shape) { return lift(count_of(shape), ranks); });
  return sum;
}

uint64_t pad_model(const PublishedModel& model, uint64_t ranks) {
  return lift(parameter_count(model), 2 * ranks);
}

uint64_t pad_units(const PublishedModel& model, uint64_t ranks) {
  uint64_t sum = 0;
  for (const auto& unit : unit_shapes(model)) sum += lift(sum_over(unit, count_of), 128 * ranks);
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

#include "lib/train/weight_rounding.h"

#include <span>

#include "lib/base/hash.h"

namespace gxp {
namespace {

// Tells this use of the seed from the others.
constexpr uint64_t kRounding = 0x726f756e64696e67;  // "rounding"

uint64_t key_of(uint64_t seed, const TensorSpec& tensor, int64_t step) {
  const uint64_t name = hash64(std::as_bytes(std::span(tensor.name)));
  return mix64(mix64(mix64(seed ^ kRounding) ^ name) + uint64_t(step));
}

}  // namespace

WeightRounding::WeightRounding(Ops& ops, const TrainConfig& train)
    : ops_(ops), stochastic_(train.rounding == "stochastic"), seed_(train.seed) {}

void WeightRounding::round(const Tensor& to, const ConstTensor& from, const TensorSpec& tensor,
                           size_t first, int64_t step) const {
  if (stochastic_ && !tensor.frozen)
    ops_.round_stochastically(to, from, {key_of(seed_, tensor, step), first});
  else
    ops_.convert(to, from);
}

}  // namespace gxp

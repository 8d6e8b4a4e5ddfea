// Initial weights from a seed. Pure: an element's value depends on the seed, the tensor's name and
// the element's index alone, so every rank, world size and thread count starts from the same model.
#pragma once

#include <cstdint>

#include "lib/arch/architecture.h"
#include "lib/device/thread_pool.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// Standard deviation of kNormal; GPT-2's (Radford et al., 2019).
inline constexpr float kInitialDeviation = 0.02f;

struct InitialisationKey {
  uint64_t seed = 0;
  int layers = 1;  // kResidualNormal is scaled by 1 / sqrt(2 * layers)
};

// Fills `part` (f32, host), the elements of a tensor from `begin` on, as spec.initial says. `begin`
// is even.
void initialise(const Tensor& part, size_t begin, const TensorSpec& spec,
                const InitialisationKey& key, ThreadPool& pool);

}  // namespace gxp

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

// Fills `tensor` (f32, host) as spec.initial says. `layers` scales kResidualNormal by 1/sqrt(2 *
// layers).
void initialise(const Tensor& tensor, const TensorSpec& spec, uint64_t seed, int layers,
                ThreadPool& pool);

}  // namespace gxp

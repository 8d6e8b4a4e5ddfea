// Weights in another floating-point type.
//
// F64, F32, F16 and BF16 become one of F32, F16 and BF16, rounded once, to nearest, ties to even.
// NaN stays NaN, subnormals and -0 stay; what exceeds the largest finite number becomes an infinity
// and is counted. All other types (integers, BOOL, F8_*) stay, and so does optimizer state.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Finite elements that became infinite. Each element of a tensor counts once, however often it is
// read, if its tensor is read in order.
using OverflowCount = std::atomic<uint64_t>;

// The weights as `dtype`, one of F32, F16 and BF16, converted in pieces of 64 KiB when they are
// read. `overflowed` counts from then on; owners: the caller and the readers.
NamedTensors cast_weights(NamedTensors tensors, StorageDType dtype,
                          const std::shared_ptr<OverflowCount>& overflowed);

}  // namespace gxp

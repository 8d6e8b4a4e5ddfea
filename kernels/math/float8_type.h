// The types of kernels/math/float8.h.
#pragma once

#include <cstdint>

namespace gxp {

enum class Float8 : uint8_t { kNone, kE4M3, kE5M2 };

}  // namespace gxp

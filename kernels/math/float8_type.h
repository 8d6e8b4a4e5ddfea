// The types of kernels/math/float8.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gxp {

enum class Float8 : uint8_t { kNone, kE4M3, kE5M2 };

// The rows of a transposed copy, with zeros up to a multiple of 16: a product sums over them.
constexpr size_t float8_rows(size_t rows) { return (rows + 15) / 16 * 16; }

}  // namespace gxp

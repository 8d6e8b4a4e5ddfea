// How a warp holds matrices: what each register of lane l is of.
#pragma once

#include <cstdint>

namespace gxp {

// Left operand, 16 x 16: register i has row l / 4 + 8 (i % 2), columns 2 (l % 4) + 8 (i / 2) and
// the next.
struct LeftFragment {
  uint32_t at[4];
};
// Right operand, 16 x 8: register i has rows 2 (l % 4) + 8 i and the next, of column l / 4.
struct RightFragment {
  uint32_t at[2];
};
// Sums, 16 x 8 floats: register i has row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2.
struct SumFragment {
  float at[4];
};
// Four matrices, 8 x 8: register i has, of matrix i or of its transpose, row l / 4, columns
// 2 (l % 4) and the next.
struct FourMatrices {
  uint32_t at[4];
};

}  // namespace gxp

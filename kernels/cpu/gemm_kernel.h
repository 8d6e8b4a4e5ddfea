// One thread's part of a matrix product: what gemm_avx512.cc, gemm_avx2.cc and gemm_baseline.cc
// each offer to gemm.cc.
#pragma once

#include <cstddef>

#include "kernels/cpu/gemm.h"

namespace gxp {

// Part of c: rows [row, row_end) and columns [column, column_end).
struct GemmPart {
  size_t row, row_end, column, column_end;
};

struct GemmKernel {
  // `scratch` is aligned to 64 bytes. An element's value does not depend on the part it is in.
  void (*compute)(const GemmArgs& args, const GemmPart& part, float* scratch);
  size_t scratch_floats;
  size_t column_step;  // parts begin best at multiples of this column
  // A part's rows of a are packed once per `block_columns` columns, its columns of b once per
  // `block_rows` rows.
  size_t block_rows, block_columns;
};

namespace avx512 {
extern const GemmKernel kGemmKernel;
}
namespace avx2 {
extern const GemmKernel kGemmKernel;
}
namespace baseline {
extern const GemmKernel kGemmKernel;
}

}  // namespace gxp

// One thread's part of a matrix product: what each gemm_<kernel>.cc offers to gemm.cc.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/cpu/gemm/gemm.h"

namespace gxp {

// Part of c: rows [row, row_end) and columns [column, column_end).
struct GemmPart {
  size_t row, row_end, column, column_end;
};

// The destination of a tile of c, and the matrix added to it.
struct TileOut {
  std::byte* c;
  DType c_type;
  size_t ldc;
  bool accumulate;
  const float* bias;
  const float* residual;
  [[nodiscard]] void* at(size_t row) const { return c + row * ldc * size_of(c_type); }
};
struct TileSize {
  size_t rows, columns, elements;  // the last: of the packed panels, along k
};

struct GemmKernel {
  std::string_view name;
  // `scratch` is aligned to 64 bytes. An element's value does not depend on the part it is in.
  void (*compute)(const GemmArgs& args, const GemmPart& part, float* scratch);
  size_t scratch_floats;
  size_t column_step;  // parts begin best at multiples of this column
  // A part's rows of a are packed once per `block_columns` columns, its columns of b once per
  // `block_rows` rows.
  size_t block_rows, block_columns;
  // For products that is_of_few_rows() says, of any type; null but for kernels of vectors.
  void (*few_rows)(const GemmArgs& args, const GemmPart& part) = nullptr;
};

namespace avx512 {
extern const GemmKernel kGemmKernel;
}
namespace avx512_bf16 {
extern const GemmKernel kGemmKernel;  // like the AMX kernels, for bf16 products only
}
namespace amx {
extern const GemmKernel kGemmKernel;
}
namespace amx_emulated {
extern const GemmKernel kGemmKernel;
}
namespace avx2 {
extern const GemmKernel kGemmKernel;
}
namespace baseline {
extern const GemmKernel kGemmKernel;
}

}  // namespace gxp

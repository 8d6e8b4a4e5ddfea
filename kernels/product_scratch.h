// What products take of a GPU's memory beside their operands and results: cuBLASLt's workspace, then
// copies of operands in the product's type. The kernels (kernels/cuda/gemm) take what these
// functions say, and plans ask them without a GPU. Of a tensor, shape, type and whether it is there
// are looked at, nothing else. Pure.
#pragma once

#include <cstddef>

#include "kernels/ops.h"

namespace gxp {

// cuBLASLt's, in front of the copies: what NVIDIA advises for Hopper.
inline constexpr size_t kProductWorkspaceBytes = size_t{32} << 20;
// Of each copy behind it.
inline constexpr size_t kProductCopyAlignment = 256;

// Which copies of a matrix's codes products need: cuBLASLt's have the elements that are multiplied
// with each other side by side in both operands.
struct Float8Ways {
  bool as_stored = false, transposed = false;
};
// The scale of a matrix in 8 bits and its codes.
size_t float8_bytes(const ConstTensor& x, Float8Ways ways);

// The copy of a tensor in another type; 0 if it is not there or of that type already.
size_t converted_bytes(const ConstTensor& tensor, DType type);

// cuBLASLt multiplies operands of one type: the half type, if one of them is f32.
DType type_of_product(const ConstTensor& a, const ConstTensor& b);

// What the operations of kernels/ops.h take.
size_t scratch_of_matmul(const ConstTensor& out, const ConstTensor& a, const ConstTensor& b,
                         const MatmulOptions& options);
size_t scratch_of(const LinearGelu& layer);
size_t scratch_of(const LinearBackward& layer);

}  // namespace gxp

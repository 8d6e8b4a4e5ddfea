// The GPU memory that products take in addition to operands and results: cuBLASLt's workspace, then
// copies of operands in the product's type. The kernels (kernels/cuda/gemm) and plans, which need
// no GPU, ask the same functions. They depend on a tensor's shape, its type and whether it is
// empty. Pure.
#pragma once

#include <cstddef>

#include "kernels/ops.h"

namespace gxp {

// cuBLASLt's, before the copies: what NVIDIA advises for Hopper.
inline constexpr size_t kProductWorkspaceBytes = size_t{32} << 20;
// The alignment of each copy after it.
inline constexpr size_t kProductCopyAlignment = 256;

// The copies of a matrix's codes that products need: in both operands, cuBLASLt wants the elements
// that are summed over side by side.
struct Float8Layouts {
  bool as_stored = false, transposed = false;
};
// The scale of a matrix in 8 bits and its codes.
size_t float8_bytes(const ConstTensor& x, Float8Layouts layouts);

// The copy of a tensor in another type; 0 if it is absent or already has that type.
size_t converted_bytes(const ConstTensor& tensor, DType type);

// cuBLASLt multiplies operands of one type: the half type, if one of them is f32.
DType type_of_product(const ConstTensor& a, const ConstTensor& b);

// Whether dweight's product may also compute dbias: cuBLASLt can sum its second operand, which is
// then the unconverted dout. Sums that are to be added to dbias go through memory after the
// workspace.
bool may_sum_bias(const LinearBackward& layer);

// Scratch memory of the operations of kernels/ops.h.
size_t scratch_of_matmul(const ConstTensor& out, const ConstTensor& a, const ConstTensor& b,
                         const MatmulOptions& options);
size_t scratch_of(const LinearGelu& layer);
size_t scratch_of(const LinearBackward& layer);

}  // namespace gxp

#include "kernels/product_scratch.h"

#include <algorithm>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

template <class AnyTensor>
bool is_there(const AnyTensor& tensor) {
  return tensor.memory.data != nullptr;
}

size_t aligned(size_t bytes) { return round_up(bytes, kProductCopyAlignment); }

}  // namespace

size_t float8_bytes(const ConstTensor& x, Float8Layouts layouts) {
  const size_t scale = kProductCopyAlignment;
  return scale + (layouts.as_stored ? aligned(x.count()) : 0) +
         (layouts.transposed ? aligned(float8_rows(x.shape.rows()) * x.shape.columns()) : 0);
}

size_t converted_bytes(const ConstTensor& tensor, DType type) {
  if (!is_there(tensor) || tensor.dtype == type) return 0;
  return aligned(tensor.count() * size_of(type));
}

DType type_of_product(const ConstTensor& a, const ConstTensor& b) {
  return a.dtype == DType::kF32 ? b.dtype : a.dtype;
}

size_t scratch_of_matmul(const ConstTensor& out, const ConstTensor& a, const ConstTensor& b,
                         const MatmulOptions& options) {
  if (options.float8 != Float8Operands{})
    return kProductWorkspaceBytes +
           float8_bytes(a, {.as_stored = !options.transpose_a, .transposed = options.transpose_a}) +
           float8_bytes(b, {.as_stored = options.transpose_b, .transposed = !options.transpose_b});
  const DType type = type_of_product(a, b);
  return kProductWorkspaceBytes + converted_bytes(a, type) + converted_bytes(b, type) +
         converted_bytes(options.bias, out.dtype);
}

// A GELU that nobody wants is written nevertheless: the product that makes x again must be the one
// that made it.
size_t scratch_of(const LinearGelu& layer) {
  const MatmulOptions apart = {.bias = layer.bias, .float8 = operands_of_forward(layer.float8)};
  const size_t product = scratch_of_matmul(layer.x, layer.in, layer.weight, apart);
  const bool is_fused = !layer.float8 && layer.x.dtype != DType::kF32;
  if (!is_fused || is_there(layer.activated)) return product;
  return std::max(product, kProductWorkspaceBytes + layer.x.count() * size_of(layer.x.dtype));
}

bool may_sum_bias(const LinearBackward& layer) {
  return is_there(layer.dbias) && is_there(layer.dweight) && !layer.outputs_first &&
         !layer.float8 && layer.dout.dtype == layer.weight.dtype;
}

// In 8 bits: the codes of dout in both layouts, then those of the weight, which those of the input
// replace.
size_t scratch_of(const LinearBackward& layer) {
  if (!layer.float8) {
    const bool adds_sums = layer.accumulate && may_sum_bias(layer);
    return kProductWorkspaceBytes + converted_bytes(layer.dout, layer.weight.dtype) +
           (adds_sums ? aligned(layer.dbias.memory.bytes) : 0);
  }
  const bool trains = is_there(layer.dweight);
  const bool turned = layer.outputs_first;
  const size_t dout = float8_bytes(layer.dout, {.as_stored = true, .transposed = trains});
  const size_t weight = float8_bytes(layer.weight, {.as_stored = !turned, .transposed = turned});
  const size_t in = trains ? float8_bytes(layer.in, {.transposed = true}) : 0;
  return kProductWorkspaceBytes + dout + std::max(weight, in);
}

}  // namespace gxp

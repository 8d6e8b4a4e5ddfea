#include "kernels/ops.h"

#include "lib/base/error.h"

namespace gxp {

void Ops::linear_gelu(const LinearGelu& layer) {
  matmul(layer.x, layer.in, layer.weight,
         {.bias = layer.bias, .float8 = operands_of_forward(layer.float8)});
  if (layer.activated.memory.data != nullptr)
    activation_forward(Activation::kGeluTanh, layer.activated, layer.x);
}

void Ops::linear_backward(const LinearBackward& layer) {
  GXP_ASSERT(!layer.of_gelu || !layer.add_dx);
  const Float8Operands float8 = operands_of_backward(layer.float8);
  const auto differentiate_input = [&] {
    layer.start(LinearPart::kInput);
    matmul(layer.dx, layer.dout, layer.weight,
           {.transpose_b = !layer.outputs_first, .accumulate = layer.add_dx, .float8 = float8});
  };
  const auto differentiate_weight = [&](const ConstTensor& a, const ConstTensor& b,
                                        const Float8Operands& types) {
    matmul(layer.dweight, a, b,
           {.transpose_a = true, .accumulate = layer.accumulate, .float8 = types});
  };
  if (layer.of_gelu) {
    differentiate_input();
    layer.start(LinearPart::kActivation);
    const bool is_kept = layer.activated.memory.data != nullptr;
    activation_backward(Activation::kGeluTanh, layer.dx, is_kept ? Tensor() : layer.in, layer.dx,
                        layer.in);
  }
  layer.start(LinearPart::kParameters);
  if (layer.dweight.memory.data != nullptr) {
    if (layer.outputs_first)
      differentiate_weight(layer.dout, layer.input(), float8);
    else
      differentiate_weight(layer.input(), layer.dout, {float8.b, float8.a});
  }
  if (layer.dbias.memory.data != nullptr) {
    if (!layer.accumulate) fill(layer.dbias, 0.0f);
    bias_backward(layer.dbias, layer.dout);
  }
  if (!layer.of_gelu) differentiate_input();
}

}  // namespace gxp

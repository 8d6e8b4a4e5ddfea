#include "kernels/ops.h"

namespace gxp {

void Ops::linear_gelu(const LinearGelu& layer) {
  matmul(layer.x, layer.in, layer.weight, {.bias = layer.bias});
  if (layer.activated.memory.data != nullptr) gelu_forward(layer.activated, layer.x);
}

void Ops::linear_backward(const LinearBackward& layer) {
  const auto differentiate_input = [&] {
    matmul(layer.dx, layer.dout, layer.weight, {.transpose_b = true});
  };
  if (layer.of_gelu) {
    differentiate_input();
    gelu_backward(layer.dx, layer.in, layer.dx, layer.in);
  }
  if (layer.dweight.memory.data != nullptr)
    matmul(layer.dweight, layer.in, layer.dout,
           {.transpose_a = true, .accumulate = layer.accumulate});
  if (layer.dbias.memory.data != nullptr) {
    if (!layer.accumulate) fill(layer.dbias, 0.0f);
    bias_backward(layer.dbias, layer.dout);
  }
  if (!layer.of_gelu) differentiate_input();
}

}  // namespace gxp

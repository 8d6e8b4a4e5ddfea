// The functions between the products of an MLP. Source: transformers 5.24, activations.py.
#pragma once

#include <array>
#include <string_view>

namespace gxp {

enum class Activation {
  kGeluTanh,  // x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  kGelu,      // x/2 (1 + erf(x / sqrt(2)))
  kSilu,      // x / (1 + e^-x)
  kRelu,
};
constexpr std::array<std::string_view, 4> words_of(Activation) {
  return {"gelu_tanh", "gelu", "silu", "relu"};
}

}  // namespace gxp

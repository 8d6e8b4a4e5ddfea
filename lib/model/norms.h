// The norms of a decoder, of either kind.
#pragma once

#include "kernels/ops.h"
#include "lib/arch/decoder.h"
#include "lib/model/model.h"

namespace gxp {

// A norm: its input (rows, columns), the statistics of each row, and the index of its weight, which
// a layer norm's bias follows.
struct Norm {
  Tensor x;
  Tensor mean;  // of layer norms
  Tensor rstd;
  size_t weight;
};

class Norms {
 public:
  Norms(const Decoder& decoder, Ops& ops)
      : ops_(ops),
        is_layer_(decoder.kind.norm == NormKind::kLayer),
        form_(decoder.kind.norm_plus_one ? RmsWeight::kPlusOne : RmsWeight::kStored),
        eps_(decoder.eps) {}

  void forward(const Tensor& out, const Norm& norm, const UnitTensors& t) {
    const Tensor& weight = t.parameters[norm.weight];
    if (is_layer_)
      ops_.layernorm_forward(out, norm.mean, norm.rstd, norm.x, weight,
                             t.parameters[norm.weight + 1], eps_);
    else
      ops_.rmsnorm_forward(out, norm.rstd, norm.x, weight, eps_, form_);
  }

  // The output again, from the statistics.
  void apply(const Tensor& out, const Norm& norm, const UnitTensors& t) {
    const Tensor& weight = t.parameters[norm.weight];
    if (is_layer_)
      ops_.layernorm_apply(out, norm.x, norm.mean, norm.rstd, weight,
                           t.parameters[norm.weight + 1]);
    else
      ops_.rmsnorm_apply(out, norm.x, norm.rstd, weight, form_);
  }

  // dx += the gradient through the norm; and its parameters' gradients.
  void backward(const Tensor& dx, const Tensor& dout, const Norm& norm, const UnitTensors& t,
                const StreamOutputs& also = {}) {
    const Tensor dweight = cleared(t.gradients[norm.weight], t);
    const Tensor dbias = is_layer_ ? cleared(t.gradients[norm.weight + 1], t) : Tensor{};
    const NormBackward pass{.dx = dx,
                            .dweight = dweight,
                            .dbias = dbias,
                            .dout = dout,
                            .x = norm.x,
                            .mean = norm.mean,
                            .rstd = norm.rstd,
                            .weight = t.parameters[norm.weight],
                            .also = also,
                            .form = form_};
    if (is_layer_)
      ops_.layernorm_backward(pass);
    else
      ops_.rmsnorm_backward(pass);
  }

 private:
  const Tensor& cleared(const Tensor& gradient, const UnitTensors& t) {
    if (!t.accumulate && is_trained(gradient)) ops_.fill(gradient, 0.0f);
    return gradient;
  }

  Ops& ops_;
  const bool is_layer_;
  const RmsWeight form_;
  const float eps_;
};

}  // namespace gxp

// The element-wise operations of kernels/ops.h: their settings, computed in double, and the order
// of their arrays (kernels/math/elementwise.h).
#include "kernels/elementwise.h"

#include <cmath>
#include <vector>

#include "kernels/ops.h"
#include "lib/base/error.h"
#include "lib/base/state_block.h"

namespace gxp {
namespace {

AdamWFactors factors_of(const AdamWStep& step) {
  const auto t = static_cast<double>(step.step);
  return {.gradient_scale = float(step.gradient_scale),
          .decay = float(step.lr * step.weight_decay),
          .l2 = float(step.l2),
          .beta1 = float(step.beta1),
          .beta2 = float(step.beta2),
          .fresh1 = float(1 - step.beta1),
          .fresh2 = float(1 - step.beta2),
          .step_size = float(step.lr / (1 - std::pow(step.beta1, t))),
          .root_correction = float(1 / std::sqrt(1 - std::pow(step.beta2, t))),
          .eps = float(step.eps)};
}

MomentumFactors factors_of(const MomentumStep& step) {
  return {.gradient_scale = float(step.gradient_scale),
          .kept = float(step.kept),
          .fresh = float(step.fresh),
          .carried = float(step.carried),
          .ahead = float(step.ahead)};
}

SgdFactors factors_of(const SgdStep& step) {
  return {factors_of(step.momentum), float(step.lr), float(step.weight_decay)};
}

LionFactors factors_of(const LionStep& step) {
  return {.gradient_scale = float(step.gradient_scale),
          .lr = float(step.lr),
          .decay = float(step.lr * step.weight_decay),
          .beta1 = float(step.beta1),
          .fresh1 = float(1 - step.beta1),
          .beta2 = float(step.beta2),
          .fresh2 = float(1 - step.beta2)};
}

// The operation `Of` with the activation function `kind`.
template <template <class Function> class Of>
ElementwiseMath math_of(Activation kind) {
  switch (kind) {
    case Activation::kGeluTanh:
      return Of<GeluTanh>();
    case Activation::kGelu:
      return Of<Gelu>();
    case Activation::kSilu:
      return Of<Silu>();
    case Activation::kRelu:
      return Of<Relu>();
  }
  fail(ErrorKind::kInternal, "apply activation function {}: it has no kernels", int(kind));
}

// Whether array `i` may have this type, where the first has `first`.
bool is_allowed(const ElementwiseForm& form, size_t i, DType type, DType first) {
  switch (form.types) {
    case ElementTypes::kOne:
      return type == first;
    case ElementTypes::kGradient:
      return type == DType::kF32 || i + 1 == form.arrays;
    case ElementTypes::kEach:
      return true;
  }
  return false;
}

// The call, whose tensors are asserted to be as the form has them.
const ElementwiseCall& checked(const ElementwiseCall& call) {
  const ElementwiseForm form = form_of(call.math);
  const auto check = [&](size_t i, const ConstTensor& tensor) {
    GXP_ASSERT(tensor.count() == call.count());
    GXP_ASSERT(is_allowed(form, i, tensor.dtype, call.written[0].dtype));
  };
  for (size_t i = 0; i < form.written; ++i) check(i, call.written[i]);
  for (size_t i = form.written; i < form.arrays; ++i) check(i, call.read[i - form.written]);
  return call;
}

PackedAdamW packed_of(const AdamWRange& at) {
  const size_t count = at.weights.count();
  GXP_ASSERT(at.first.dtype == DType::kBF16 || at.first.dtype == DType::kU8);
  GXP_ASSERT(at.second.dtype == at.first.dtype && at.weights.dtype == DType::kF32);
  GXP_ASSERT(at.first.count() == count && at.second.count() == count);
  GXP_ASSERT(at.gradients.count() == count);
  const size_t blocks = at.first.dtype == DType::kU8 ? (count + kStateBlock - 1) / kStateBlock : 0;
  for (const Tensor& scales : {at.first_scales, at.second_scales})
    GXP_ASSERT(blocks == 0 || (scales.dtype == DType::kF32 && scales.count() == blocks));
  return {AdamWUpdate{factors_of(at.step)},
          at.weights,
          at.first,
          at.second,
          at.gradients,
          at.first_scales,
          at.second_scales,
          at.first_bits,
          at.second_bits};
}

}  // namespace

void Ops::apply_all(std::span<const ElementwiseCall> calls) {
  for (const ElementwiseCall& call : calls) apply(call);
}

void Ops::activation_forward(Activation kind, Tensor out, ConstTensor x) {
  apply(checked({math_of<ForwardOf>(kind), {out}, {x}}));
}
void Ops::activation_backward(Activation kind, Tensor dx, Tensor activated, ConstTensor dout,
                              ConstTensor x) {
  if (activated.memory.data == nullptr)
    apply(checked({math_of<SlopeOf>(kind), {dx}, {dout, x}}));
  else
    apply(checked({math_of<BackwardOf>(kind), {dx, activated}, {dout, x}}));
}
void Ops::gated_forward(Activation kind, Tensor out, ConstTensor gate, ConstTensor up) {
  apply(checked({math_of<GatedForwardOf>(kind), {out}, {gate, up}}));
}
void Ops::gated_backward(Activation kind, Tensor dout, Tensor gate, Tensor up) {
  apply(checked({math_of<GatedBackwardOf>(kind), {dout, gate, up}}));
}
void Ops::gated_gradients(Activation kind, Tensor gate, Tensor up, ConstTensor dout) {
  apply(checked({math_of<GatedGradientsOf>(kind), {gate, up}, {dout}}));
}
void Ops::scale(Tensor out, ConstTensor x, float factor) {
  apply(checked({Scaled{factor}, {out}, {x}}));
}
void Ops::add_scaled(Tensor out, ConstTensor a, ConstTensor b, float factor) {
  apply(checked({SumWithScaled{factor}, {out}, {a, b}}));
}
void Ops::cap_forward(Tensor out, ConstTensor x, float cap) {
  apply(checked({CapForward{cap}, {out}, {x}}));
}
void Ops::cap_backward(Tensor dx, ConstTensor dout, ConstTensor capped, float cap) {
  apply(checked({CapBackward{cap}, {dx}, {dout, capped}}));
}
void Ops::add(Tensor out, ConstTensor a, ConstTensor b) {
  apply(checked({SumOfTwo(), {out}, {a, b}}));
}
void Ops::fill(Tensor out, float value) { apply(checked({Fill{value}, {out}})); }

void Ops::adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
                const AdamWStep& step) {
  const AdamWRange range = {weights, first, second, gradients, step};
  adamw({&range, 1});
}
void Ops::adamw(std::span<const AdamWRange> ranges) {
  if (!ranges.empty() && ranges[0].first.dtype != DType::kF32) {
    std::vector<PackedAdamW> packed;
    for (const AdamWRange& at : ranges) packed.push_back(packed_of(at));
    return adamw_packed(packed);
  }
  std::vector<ElementwiseCall> calls;
  for (const AdamWRange& at : ranges)
    calls.push_back(checked(
        {AdamWUpdate{factors_of(at.step)}, {at.weights, at.first, at.second}, {at.gradients}}));
  apply_all(calls);
}
void Ops::sgd(Tensor weights, Tensor momentum, ConstTensor gradients, const SgdStep& step) {
  if (momentum.memory.data == nullptr)
    apply(checked({SgdUpdate{factors_of(step)}, {weights}, {gradients}}));
  else
    apply(checked({SgdMomentumUpdate{factors_of(step)}, {weights, momentum}, {gradients}}));
}
void Ops::lion(Tensor weights, Tensor momentum, ConstTensor gradients, const LionStep& step) {
  apply(checked({LionUpdate{factors_of(step)}, {weights, momentum}, {gradients}}));
}
void Ops::momentum(Tensor direction, Tensor momentum, ConstTensor gradients,
                   const MomentumStep& step) {
  apply(checked({MomentumDirection{factors_of(step)}, {direction, momentum}, {gradients}}));
}

}  // namespace gxp

// The element-wise operations of kernels/ops.h: for each the arithmetic of one element, from which
// both backends make their kernels. One more operation is a struct here, its place in the list at
// the end, and a function of Ops (kernels/elementwise.cc).
//
// A struct holds the settings that all elements share. Its operator() gets one element of each of
// the operation's arrays, in the order of kForm, and replaces those that are written. F is float or
// a vector of floats (host_device.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/math/activations.h"
#include "kernels/math/optimizer_steps.h"
#include "kernels/math/tanh.h"

namespace gxp {

enum class ElementTypes : uint8_t {
  kOne,       // all arrays have the same type
  kEach,      // each has one of its own
  kGradient,  // f32, but the last, which has any type
};

struct ElementwiseForm {
  const char* name;  // of the function of Ops
  size_t arrays;
  size_t written;     // the first so many are written
  size_t first_read;  // this one and those after it are read
  ElementTypes types = ElementTypes::kOne;
  bool is_activation = false;  // for timing (kernels/ops_call.h)
};

// Of an activation function (activations.h).
template <class Function>
struct ForwardOf {  // out, x
  static constexpr ElementwiseForm kForm = {.name = "activation_forward",
                                            .arrays = 2,
                                            .written = 1,
                                            .first_read = 1,
                                            .is_activation = true};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[2]) const {
    at[0] = Function::value(at[1]);
  }
};

template <class Function>
struct BackwardOf {  // dx, activated, dout, x
  static constexpr ElementwiseForm kForm = {.name = "activation_backward",
                                            .arrays = 4,
                                            .written = 2,
                                            .first_read = 2,
                                            .is_activation = true};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[4]) const {
    const auto known = Function::value_and_slope(at[3]);
    at[0] = at[2] * known.slope;
    at[1] = known.value;
  }
};

template <class Function>
struct SlopeOf {  // dx, dout, x
  static constexpr ElementwiseForm kForm = {.name = "activation_backward",
                                            .arrays = 3,
                                            .written = 1,
                                            .first_read = 1,
                                            .is_activation = true};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    at[0] = at[1] * Function::value_and_slope(at[2]).slope;
  }
};

template <class Function>
struct GatedForwardOf {  // out, gate, up
  static constexpr ElementwiseForm kForm = {
      .name = "gated_forward", .arrays = 3, .written = 1, .first_read = 1, .is_activation = true};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    at[0] = Function::value(at[1]) * at[2];
  }
};

template <class Function>
struct GatedBackwardOf {  // dout, gate, up become out, dgate, dup
  static constexpr ElementwiseForm kForm = {
      .name = "gated_backward", .arrays = 3, .written = 3, .first_read = 0, .is_activation = true};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    const auto known = Function::value_and_slope(at[1]);
    const F gradient = at[0];
    const F factor = at[2];
    at[0] = known.value * factor;
    at[1] = gradient * factor * known.slope;
    at[2] = gradient * known.value;
  }
};

template <class Function>
struct GatedGradientsOf {  // gate and up become dgate and dup; dout
  static constexpr ElementwiseForm kForm = {
      .name = "gated_gradients", .arrays = 3, .written = 2, .first_read = 0, .is_activation = true};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    const auto known = Function::value_and_slope(at[0]);
    const F factor = at[1];
    at[0] = at[2] * factor * known.slope;
    at[1] = at[2] * known.value;
  }
};

struct Scaled {  // out, x
  static constexpr ElementwiseForm kForm = {
      .name = "scale", .arrays = 2, .written = 1, .first_read = 1, .types = ElementTypes::kEach};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[2]) const {
    at[0] = at[1] * factor;
  }
  float factor;
};

struct SumWithScaled {  // out, a, b
  static constexpr ElementwiseForm kForm = {.name = "add_scaled",
                                            .arrays = 3,
                                            .written = 1,
                                            .first_read = 1,
                                            .types = ElementTypes::kEach};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    at[0] = at[1] + at[2] * factor;
  }
  float factor;
};

struct CapForward {  // out, x
  static constexpr ElementwiseForm kForm = {
      .name = "cap_forward", .arrays = 2, .written = 1, .first_read = 1};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[2]) const {
    at[0] = capped(at[1], cap);
  }
  float cap;
};

struct CapBackward {  // dx, dout, capped
  static constexpr ElementwiseForm kForm = {
      .name = "cap_backward", .arrays = 3, .written = 1, .first_read = 1};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    at[0] = at[1] * slope_of_capped(at[2], cap);
  }
  float cap;
};

struct SumOfTwo {  // out, a, b
  static constexpr ElementwiseForm kForm = {
      .name = "add", .arrays = 3, .written = 1, .first_read = 1, .types = ElementTypes::kEach};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    at[0] = at[1] + at[2];
  }
};

struct Fill {  // out
  static constexpr ElementwiseForm kForm = {
      .name = "fill", .arrays = 1, .written = 1, .first_read = 1};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[1]) const {
    at[0] = value - F{};  // keeps the sign of -0
  }
  float value;
};

struct AdamWUpdate {  // weights, first, second, gradients
  static constexpr ElementwiseForm kForm = {.name = "adamw",
                                            .arrays = 4,
                                            .written = 3,
                                            .first_read = 0,
                                            .types = ElementTypes::kGradient};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[4]) const {
    const auto after = adamw_update(AdamWElement<F>{at[0], at[1], at[2]}, at[3], factors);
    at[0] = after.weight;
    at[1] = after.first;
    at[2] = after.second;
  }
  AdamWFactors factors;
};

struct SgdUpdate {  // weights, gradients
  static constexpr ElementwiseForm kForm = {
      .name = "sgd", .arrays = 2, .written = 1, .first_read = 0, .types = ElementTypes::kGradient};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[2]) const {
    at[0] = at[0] - factors.lr * decayed_gradient(at[0], at[1], factors);
  }
  SgdFactors factors;
};

struct SgdMomentumUpdate {  // weights, momentum, gradients
  static constexpr ElementwiseForm kForm = {
      .name = "sgd", .arrays = 3, .written = 2, .first_read = 0, .types = ElementTypes::kGradient};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    const auto after =
        momentum_update(at[1], decayed_gradient(at[0], at[2], factors), factors.momentum);
    at[0] = at[0] - factors.lr * after.direction;
    at[1] = after.momentum;
  }
  SgdFactors factors;
};

struct LionUpdate {  // weights, momentum, gradients
  static constexpr ElementwiseForm kForm = {
      .name = "lion", .arrays = 3, .written = 2, .first_read = 0, .types = ElementTypes::kGradient};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    const auto after = lion_update(LionElement<F>{at[0], at[1]}, at[2], factors);
    at[0] = after.weight;
    at[1] = after.momentum;
  }
  LionFactors factors;
};

struct MomentumDirection {  // direction, momentum, gradients
  static constexpr ElementwiseForm kForm = {.name = "momentum",
                                            .arrays = 3,
                                            .written = 2,
                                            .first_read = 1,
                                            .types = ElementTypes::kGradient};
  template <class F>
  GXP_HOST_DEVICE void operator()(F (&at)[3]) const {
    const auto after = momentum_update(at[1], at[2] * factors.gradient_scale, factors);
    at[0] = after.direction;
    at[1] = after.momentum;
  }
  MomentumFactors factors;
};

// All operations, those of an activation function for each of these.
template <class... Function>
using ElementwiseMathWith =
    std::variant<ForwardOf<Function>..., BackwardOf<Function>..., SlopeOf<Function>...,
                 GatedForwardOf<Function>..., GatedBackwardOf<Function>...,
                 GatedGradientsOf<Function>..., Scaled, SumWithScaled, CapForward, CapBackward,
                 SumOfTwo, Fill, AdamWUpdate, SgdUpdate, SgdMomentumUpdate, LionUpdate,
                 MomentumDirection>;
using ElementwiseMath = ElementwiseMathWith<GeluTanh, Gelu, Silu, Relu>;

}  // namespace gxp

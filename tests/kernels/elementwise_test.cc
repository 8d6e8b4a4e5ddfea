#include <algorithm>
#include <cmath>

#include "tests/kernels/halves.h"

namespace gxp {
namespace {

using oracle::Values;

struct Function {
  const char* name;
  Activation kind;
  double (*value)(double x);
  double roundings;  // near 0
};
const std::vector<Function> kFunctions = {{"gelu_tanh", Activation::kGeluTanh, oracle::gelu, 4},
                                          {"gelu", Activation::kGelu, oracle::gelu_erf, 7},
                                          {"silu", Activation::kSilu, oracle::silu, 4},
                                          {"relu", Activation::kRelu, oracle::relu, 0}};
double slope_at(const Function& function, double x) {
  return oracle::central_difference([&](const Values& v) { return function.value(v[0]); }, {x})[0];
}

TEST_CASE("the oracle's gelu slope is its central difference", "[kernels]") {
  for (double x = -6; x <= 6; x += 0.37)
    CHECK(slope_at(kFunctions[0], x) == Approx(oracle::gelu_slope(x)).margin(1e-9));
}

TEST_CASE("an activation function is the formula's value to a few roundings of its argument",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const Function f = GENERATE(from_range(kFunctions));
  const size_t count = GENERATE(1, 3, 16, 33, 2051);
  CAPTURE(kind.name, f.name, count);
  TestBackend ops(kind);
  const Floats x = random_floats(count, 1, 6);
  Floats out(count);
  ops->activation_forward(f.kind, tensor_of(out, {count}), tensor_of(x, {count}));
  for (size_t i = 0; i < count; ++i) {
    // The exponential turns the rounding of its argument, at most 20 here, into a relative error.
    const double expected = f.value(x[i]);
    const double slack = f.roundings + 4 * std::abs(x[i]) * std::abs(x[i]);
    REQUIRE(std::abs(out[i] - expected) <= slack * 6e-8 * std::abs(expected) + 1e-30);
  }
}

TEST_CASE("an activation function's backward has its slope, and activates again, also in place",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const Function f = GENERATE(from_range(kFunctions));
  const size_t count = GENERATE(1, 17, 1000, 2051);
  CAPTURE(kind.name, f.name, count);
  TestBackend ops(kind);
  const Floats x = random_floats(count, 1, 6);
  const Floats dout = random_floats(count, 2);
  Floats dx(count), activated(count), forward(count), alone(count);
  const ConstTensor argument = tensor_of(x, {count}), upstream = tensor_of(dout, {count});
  ops->activation_forward(f.kind, tensor_of(forward, {count}), argument);
  ops->activation_backward(f.kind, tensor_of(dx, {count}), tensor_of(activated, {count}), upstream,
                           argument);
  ops->activation_backward(f.kind, tensor_of(alone, {count}), {}, upstream, argument);
  Values expected(count);
  for (size_t i = 0; i < count; ++i) expected[i] = dout[i] * slope_at(f, x[i]);
  CHECK(distance_in_eps(dx, expected, 1) < 8);
  CHECK(activated == forward);
  CHECK(alone == dx);

  Floats dx_in_place = dout, activated_in_place = x;
  const Tensor same_dout = tensor_of(dx_in_place, {count});
  const Tensor same_x = tensor_of(activated_in_place, {count});
  ops->activation_backward(f.kind, same_dout, same_x, same_dout, same_x);
  CHECK(dx_in_place == dx);
  CHECK(activated_in_place == activated);
}

TEST_CASE("a gated activation is f(gate) * up, and its backward leaves the arrays of the formula",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const Function f = GENERATE(from_range(kFunctions));
  const size_t count = GENERATE(1, 17, 1000, 2051);
  CAPTURE(kind.name, f.name, count);
  TestBackend ops(kind);
  const Floats gate = random_floats(count, 1, 6), up = random_floats(count, 2);
  const Floats dout = random_floats(count, 3);
  Floats out(count), activated = dout, dgate = gate, dup = up;
  ops->gated_forward(f.kind, tensor_of(out, {count}), tensor_of(gate, {count}),
                     tensor_of(up, {count}));
  ops->gated_backward(f.kind, tensor_of(activated, {count}), tensor_of(dgate, {count}),
                      tensor_of(dup, {count}));
  Values expected(count), expected_dgate(count), expected_dup(count);
  for (size_t i = 0; i < count; ++i) {
    expected[i] = f.value(gate[i]) * up[i];
    expected_dgate[i] = dout[i] * up[i] * slope_at(f, gate[i]);
    expected_dup[i] = dout[i] * f.value(gate[i]);
  }
  CHECK(distance_in_eps(out, expected, 1) < 8);
  CHECK(activated == out);
  CHECK(distance_in_eps(dgate, expected_dgate, 1) < 8);
  CHECK(distance_in_eps(dup, expected_dup, 1) < 8);
  Floats gate_alone = gate, up_alone = up;
  ops->gated_gradients(f.kind, tensor_of(gate_alone, {count}), tensor_of(up_alone, {count}),
                       tensor_of(dout, {count}));
  CHECK(gate_alone == dgate);
  CHECK(up_alone == dup);
}

TEST_CASE("scale and add_scaled take every combination of types, also in place", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const DType a_type = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  const DType b_type = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  const DType out_type = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  const size_t count = GENERATE(3, 2051);
  CAPTURE(kind.name, to_string(a_type), to_string(b_type), to_string(out_type), count);
  TestBackend ops(kind);
  // A bf16 times the factor, which has two bits, is exact: whether both are fused changes nothing.
  HalfArray a(random_floats(count, 1), a_type);
  HalfArray b(rounded(random_floats(count, 2), DType::kBF16), b_type);
  HalfArray scaled(Floats(count), out_type), sum(Floats(count), out_type);
  const Floats a_values = a.floats(), b_values = b.floats();
  ops->scale(scaled.tensor({count}), b.tensor({count}), -0.375f);
  ops->add_scaled(sum.tensor({count}), a.tensor({count}), b.tensor({count}), -0.375f);
  Floats expected_scaled(count), expected_sum(count);
  for (size_t i = 0; i < count; ++i) {
    expected_scaled[i] = b_values[i] * -0.375f;
    expected_sum[i] = a_values[i] + expected_scaled[i];
  }
  CHECK(scaled.floats() == rounded(expected_scaled, out_type));
  CHECK(sum.floats() == rounded(expected_sum, out_type));
  ops->scale(b.tensor({count}), b.tensor({count}), -0.375f);
  CHECK(b.floats() == rounded(expected_scaled, b_type));
}

TEST_CASE("a cap bounds values by tanh, and its backward has the slope, also in place",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const float cap = GENERATE(0.5f, 30.0f);
  const size_t count = GENERATE(1, 17, 2051);
  CAPTURE(kind.name, cap, count);
  TestBackend ops(kind);
  const Floats x = random_floats(count, 1, 60), dout = random_floats(count, 2);
  Floats out(count), dx(count), out_in_place = x, dx_in_place = dout;
  ops->cap_forward(tensor_of(out, {count}), tensor_of(x, {count}), cap);
  ops->cap_backward(tensor_of(dx, {count}), tensor_of(dout, {count}),
                    tensor_of(std::as_const(out), {count}), cap);
  Values expected(count), expected_dx(count);
  for (size_t i = 0; i < count; ++i) {
    const double share = std::tanh(double(x[i]) / cap);
    expected[i] = cap * share;
    expected_dx[i] = dout[i] * (1 - share * share);
  }
  CHECK(distance_in_eps(out, expected) < 4);
  CHECK(distance_in_eps(dx, expected_dx, 1) < 8);
  ops->cap_forward(tensor_of(out_in_place, {count}), tensor_of(std::as_const(x), {count}), cap);
  const Tensor same = tensor_of(dx_in_place, {count});
  ops->cap_backward(same, same, tensor_of(out, {count}), cap);
  CHECK(out_in_place == out);
  CHECK(dx_in_place == dx);
}

struct AdamWState {
  Values weights, first, second;
};

// In the order of kernels/ops.h: decay, moments, bias-corrected update.
void oracle_adamw(AdamWState& s, const Floats& gradients, const AdamWStep& step) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const double g = gradients[i] * step.gradient_scale;
    s.weights[i] -= step.lr * step.weight_decay * s.weights[i];
    s.first[i] = step.beta1 * s.first[i] + (1 - step.beta1) * g;
    s.second[i] = step.beta2 * s.second[i] + (1 - step.beta2) * g * g;
    const double corrected = s.first[i] / (1 - std::pow(step.beta1, double(step.step)));
    const double root = std::sqrt(s.second[i] / (1 - std::pow(step.beta2, double(step.step))));
    s.weights[i] -= step.lr * corrected / (root + step.eps);
  }
}

TEST_CASE("adamw follows the oracle over several steps", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t count = GENERATE(1, 15, 1025, 3001);
  CAPTURE(kind.name, count);
  TestBackend ops(kind);
  Floats weights = random_floats(count, 1), first(count), second(count);
  AdamWState expected = {oracle::to_values(weights), Values(count), Values(count)};
  const int steps = 5;
  for (int step = 1; step <= steps; ++step) {
    const Floats gradients = random_floats(count, unsigned(10 + step), 0.1f);
    const AdamWStep settings = {1e-2, 0.9, 0.95, 1e-8, 0.1, step, 0.7};
    ops->adamw(tensor_of(weights, {count}), tensor_of(first, {count}), tensor_of(second, {count}),
               tensor_of(gradients, {count}), settings);
    oracle_adamw(expected, gradients, settings);
  }
  CHECK(distance_in_eps(weights, expected.weights) < roundings(steps, 4));
  CHECK(distance_in_eps(first, expected.first) < roundings(steps, 4));
  CHECK(distance_in_eps(second, expected.second) < roundings(steps, 4));
}

TEST_CASE("ranges that are updated together have the bits of ranges updated alone", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t gap = GENERATE(0, 1);  // ranges that lie in fours, and some that do not
  CAPTURE(kind.name, gap);
  TestBackend ops(kind);
  std::vector<size_t> counts = {1, 3, 40'000};
  for (size_t i = 1; i < 100; ++i) counts.push_back(4 * i + gap);  // more than a GPU's launch takes
  counts.push_back(0);
  size_t total = 0;
  for (const size_t count : counts) total += (count + 3) / 4 * 4 + gap;
  const Floats start = random_floats(total, 1), gradients = random_floats(total, 2, 0.1f);
  const auto updated = [&](bool together) {
    std::array<Floats, 3> state = {start, Floats(total), Floats(total)};
    std::vector<AdamWRange> ranges;
    size_t at = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const Shape shape = {counts[i]};
      const auto part = [&](auto& floats) {
        return tensor_of(floats, {total}).rows(at, counts[i]).reshape(shape);
      };
      const AdamWStep step = {1e-2, 0.9, 0.95, 1e-8, i % 2 == 0 ? 0.1 : 0.0, 3, 0.7};
      ranges.push_back({part(state[0]), part(state[1]), part(state[2]), part(gradients), step});
      at += (counts[i] + 3) / 4 * 4 + gap;
    }
    if (together) ops->adamw(ranges);
    for (const AdamWRange& range : ranges) {
      if (!together)
        ops->adamw(range.weights, range.first, range.second, range.gradients, range.step);
    }
    return state;
  };
  CHECK(updated(true) == updated(false));
}

TEST_CASE("sums in double have the same bits on every instruction set and thread count",
          "[kernels]") {
  const size_t count = GENERATE(0, 1, 15, 16, 4099, 16384, 40000);
  CAPTURE(count);
  const Floats x = random_floats(count, 3);
  double sum = 0;
  double squares = 0;
  for (const float value : x) sum += value, squares += double(value) * value;
  TestBackend reference(backend_kinds().front());
  const double first_sum = reference->sum(tensor_of(x, {count}));
  const double first_squares = reference->sum_of_squares(tensor_of(x, {count}));
  CHECK(first_sum == Approx(sum).margin(1e-10));
  CHECK(first_squares == Approx(squares).epsilon(1e-13));
  for (const auto& kind : backend_kinds()) {
    TestBackend ops(kind);
    CHECK(ops->sum(tensor_of(x, {count})) == first_sum);
    CHECK(ops->sum_of_squares(tensor_of(x, {count})) == first_squares);
    std::vector<double> total = {1.5};
    ops->add_sum_of_squares({memory_of(total), DType::kF64, {}}, tensor_of(x, {count}));
    CHECK(total[0] == 1.5 + first_squares);
  }
}

TEST_CASE("a fingerprint is the same everywhere, and another if one bit is", "[kernels]") {
  const size_t count = GENERATE(1, 2, 4099, 140000);
  const DType dtype = GENERATE(DType::kU8, DType::kBF16, DType::kF32, DType::kF64);
  CAPTURE(count, dtype);
  const size_t element = size_of(dtype);
  std::vector<uint8_t> bytes(count * element);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(mix64(i));
  const auto tensor = [&](size_t first, size_t elements) {
    return ConstTensor(memory_of(std::as_const(bytes)).slice(first * element, elements * element),
                       dtype, {elements});
  };
  TestBackend reference(backend_kinds().front());
  const auto fingerprint = [&](const std::vector<ConstTensor>& parts) {
    return reference->fingerprint(parts);
  };
  const uint64_t first = fingerprint({tensor(0, count)});
  for (const auto& kind : backend_kinds()) {
    TestBackend ops(kind);
    const size_t half = count / 16 * 8;  // whole words
    std::vector<ConstTensor> parts = {tensor(half, count - half)};
    if (half > 0) parts.insert(parts.begin(), tensor(0, half));
    CHECK(ops->fingerprint(parts) == first);
  }
  for (const size_t bit : {size_t{0}, bytes.size() * 4 + 3, bytes.size() * 8 - 1}) {
    bytes[bit / 8] ^= uint8_t(1 << bit % 8);
    CHECK(fingerprint({tensor(0, count)}) != first);
    bytes[bit / 8] ^= uint8_t(1 << bit % 8);
  }
  if (count > 1) {
    std::swap_ranges(bytes.begin(), bytes.begin() + ptrdiff_t(element),
                     bytes.end() - ptrdiff_t(element));
    CHECK(fingerprint({tensor(0, count)}) != first);
  }
}

TEST_CASE("fill writes every element", "[kernels]") {
  const float value = GENERATE(0.0f, -0.0f, 1.5f);
  const size_t count = GENERATE(0, 1, 2051);
  TestBackend ops(backend_kinds().back());
  Floats x(count, 7.0f);
  ops->fill(tensor_of(x, {count}), value);
  for (const float element : x)
    REQUIRE((element == value && std::signbit(element) == std::signbit(value)));
}

}  // namespace
}  // namespace gxp

// Floats of 8 bits and products of them, against a table of all codes.
#include "kernels/math/float8.h"

#include <algorithm>
#include <optional>

#include "tests/combinations.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/float8_codes.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

using oracle::Values;

const std::vector<Float8> kFloat8Types = {Float8::kE4M3, Float8::kE5M2};

// What a code stands for, from the specification's table; none of NaN and infinity.
std::optional<double> value_of(int code, Float8 type) {
  const int bits = type == Float8::kE4M3 ? 3 : 2;
  const int bias = type == Float8::kE4M3 ? 7 : 15;
  const int exponent = (code & 0x7f) >> bits;
  const double mantissa = double(code & ((1 << bits) - 1)) / (1 << bits);
  if (type == Float8::kE4M3 ? (code & 0x7f) == 0x7f : exponent == 31) return {};
  const double size =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1 + mantissa, exponent - bias);
  return (code & 0x80) != 0 ? -size : size;
}

// The code whose value is nearest, of two the even one, by search.
int nearest_code(double x, Float8 type) {
  int best = 0;
  for (int code = 0; code < 0x80; ++code) {
    const auto value = value_of(code, type);
    if (!value) break;
    const double closer =
        std::abs(*value_of(best, type) - std::abs(x)) - std::abs(*value - std::abs(x));
    if (closer > 0 || (closer == 0 && code % 2 == 0)) best = code;
  }
  return best + (std::signbit(x) ? 0x80 : 0);
}

double most_of(Float8 type) { return type == Float8::kE4M3 ? 448 : 57344; }

// A tensor's values as a product sees them: by the scale that takes the largest just below the
// type's largest.
Values rounded_to(const Floats& x, Float8 type) {
  double largest = 0;
  for (const float value : x) largest = std::max(largest, std::abs(double(value)));
  double scale = 1;
  while (largest > 0 && largest * scale <= most_of(type)) scale *= 2;
  while (largest * scale > most_of(type)) scale /= 2;
  Values out;
  for (const float value : x)
    out.push_back(*value_of(nearest_code(value * scale, type), type) / scale);
  return out;
}

TEST_CASE("every code of 8 bits is what the specification says, and encodes to itself",
          "[kernels]") {
  const Float8 type = GENERATE(from_range(kFloat8Types));
  const Float8Format format = format_of(type);
  for (int code = 0; code < 256; ++code) {
    CAPTURE(int(type), code);
    const float decoded = decode_float8(uint8_t(code), format);
    const auto value = value_of(code, type);
    if (!value) {
      CHECK(!std::isfinite(decoded));
      CHECK(std::isinf(decoded) == (type == Float8::kE5M2 && (code & 0x7f) == 0x7c));
      continue;
    }
    CHECK(double(decoded) == *value);
    CHECK(encode_float8(decoded, format) == code);
    CHECK(encode_float8(round_to_float8(decoded, format), format) == code);
  }
  CHECK(encode_float8(round_to_float8(std::nanf("0x3fffff"), format), format) == 0x7f);
}

TEST_CASE("every bf16 within a type's range is rounded to the nearest of its numbers",
          "[kernels]") {
  const Float8 type = GENERATE(from_range(kFloat8Types));
  const Float8Format format = format_of(type);
  int differ = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto x = std::bit_cast<float>(bits << 16);
    if (!(std::abs(x) <= float(most_of(type)))) continue;
    const float rounded = round_to_float8(x, format);
    const int code = nearest_code(x, type);
    if (double(rounded) != *value_of(code, type) || encode_float8(rounded, format) != code)
      ++differ;
  }
  CHECK(differ == 0);
}

TEST_CASE("a scale takes every largest value to the upper half of the range, but tiny ones",
          "[kernels]") {
  const Float8 type = GENERATE(from_range(kFloat8Types));
  int differ = 0;
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float scale = float8_scale(bits << 16, type);
    const double scaled = double(std::bit_cast<float>(bits << 16)) * double(scale);
    const bool in_upper_half = scaled > most_of(type) / 2 || scale == 0x1p63f;
    if (scaled > most_of(type) || !in_upper_half || !std::isnormal(1 / scale)) ++differ;
  }
  CHECK(differ == 0);
  CHECK(std::isnan(float8_scale(0x7f800000u, type)));
  CHECK(std::isnan(float8_scale(0x7fc00000u, type)));
}

// Values of many sizes.
Floats spread_floats(size_t count, unsigned seed) {
  Floats x = random_floats(count, seed);
  for (size_t i = 0; i < count; ++i) x[i] = std::ldexp(x[i], -int(i * 7 % 23));
  return x;
}

struct Case {
  size_t m, n, k;
  bool transpose_a, transpose_b;
};
// Parts of a tile of 64, several of them, and all that need be no multiple of 16.
const std::vector<Case> kCases = {{16, 16, 16, false, false}, {17, 32, 80, false, false},
                                  {144, 80, 67, true, false}, {16, 16, 1, true, false},
                                  {1, 48, 144, false, true},  {80, 144, 208, true, true}};

Tensor stored(HalfArray& x, size_t rows, size_t columns, bool transposed) {
  return x.tensor(transposed ? Shape{columns, rows} : Shape{rows, columns});
}

TEST_CASE("a product in 8 bits with the identity is the operand, rounded, to the bit",
          "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const Float8 type = GENERATE(from_range(kFloat8Types));
  const DType dtype = GENERATE(DType::kF32, DType::kBF16);
  const bool transposed = GENERATE(false, true);
  const bool is_left = GENERATE(false, true);
  CAPTURE(kind.name, int(type), to_string(dtype), transposed, is_left);
  const size_t rows = is_left ? 144 : 80;
  const size_t columns = is_left ? 80 : 144;
  const size_t width = 80;
  HalfArray x(spread_floats(rows * columns, 1), dtype);
  Floats ones(width * width);
  for (size_t i = 0; i < width; ++i) ones[i * width + i] = 1;
  HalfArray identity(ones, DType::kBF16);
  Floats out(rows * columns);
  TestBackend ops(kind);
  const Tensor operand = stored(x, rows, columns, transposed);
  const Tensor other = identity.tensor({width, width});
  if (is_left)
    ops->matmul(tensor_of(out, {rows, columns}), operand, other,
                {.transpose_a = transposed, .float8 = {type, Float8::kE4M3}});
  else
    ops->matmul(tensor_of(out, {rows, columns}), other, operand,
                {.transpose_b = transposed, .float8 = {Float8::kE4M3, type}});
  const Values expected = rounded_to(x.floats(), type);
  size_t differ = 0;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j)
      if (double(out[i * columns + j]) != expected[transposed ? j * rows + i : i * columns + j])
        ++differ;
  }
  CHECK(differ == 0);
}

enum class Extra { kNone, kBias, kAccumulate, kBiasAndResidual };

TEST_CASE("products in 8 bits are those of the rounded operands, with what is added to them",
          "[kernels]") {
  const auto [kind, types, out_type, extra] = GENERATE(
      from_range(combinations(device_kinds(),
                              std::vector<Float8Operands>({{Float8::kE4M3, Float8::kE4M3},
                                                           {Float8::kE5M2, Float8::kE4M3},
                                                           {Float8::kE4M3, Float8::kE5M2}}),
                              std::vector<DType>{DType::kF32, DType::kBF16},
                              std::vector<Extra>{Extra::kNone, Extra::kBias, Extra::kAccumulate,
                                                 Extra::kBiasAndResidual})));
  const bool has_residual = extra == Extra::kBiasAndResidual;
  const bool has_bias = extra == Extra::kBias || has_residual;
  if (has_residual && out_type != DType::kF32) return;
  TestBackend ops(kind);
  for (const Case& c : kCases) {
    CAPTURE(kind.name, int(types.a), int(types.b), to_string(out_type), int(extra), c.m, c.n, c.k);
    HalfArray a(random_floats(c.m * c.k, 1), DType::kBF16),
        b(random_floats(c.k * c.n, 2), DType::kF32);
    HalfArray bias(random_floats(c.n, 3), DType::kBF16), out(random_floats(c.m * c.n, 4), out_type);
    Floats residual = random_floats(c.m * c.n, 5);
    const Values left = rounded_to(a.floats(), types.a), right = rounded_to(b.floats(), types.b);
    const Floats before = out.floats(), added = bias.floats();
    Values expected(c.m * c.n);
    for (size_t i = 0; i < expected.size(); ++i) {
      const size_t row = i / c.n, column = i % c.n;
      for (size_t l = 0; l < c.k; ++l)
        expected[i] += left[c.transpose_a ? l * c.m + row : row * c.k + l] *
                       right[c.transpose_b ? column * c.k + l : l * c.n + column];
      if (extra == Extra::kAccumulate) expected[i] += before[i];
      if (has_bias) expected[i] += added[column];
      if (has_residual) expected[i] += residual[i];
    }
    MatmulOptions options{.transpose_a = c.transpose_a,
                          .transpose_b = c.transpose_b,
                          .accumulate = extra == Extra::kAccumulate,
                          .float8 = types};
    if (has_bias) options.bias = bias.tensor({c.n});
    if (has_residual) options.residual = tensor_of(residual, {c.m, c.n});
    ops->matmul(out.tensor({c.m, c.n}), stored(a, c.m, c.k, c.transpose_a),
                stored(b, c.k, c.n, c.transpose_b), options);
    // What is added to a product that was rounded is rounded again.
    const double rounding = out_type == DType::kF32 ? 0 : (extra == Extra::kNone ? 1 : 2) * 0x1p-8;
    const double sums = kind.float8_error * double((c.k + 31) / 32);
    const double eps = double(std::numeric_limits<float>::epsilon());
    CHECK(distance_in_eps(out.floats(), expected, 1) < roundings(c.k, 4) + (rounding + sums) / eps);
  }
}

TEST_CASE("zeros multiply to zeros in 8 bits, and a NaN or an infinity to NaN", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const float value = GENERATE(0.0f, std::nanf(""), -std::numeric_limits<float>::infinity());
  const bool is_left = GENERATE(false, true);
  CAPTURE(kind.name, value, is_left);
  TestBackend ops(kind);
  Floats x(32 * 16), ones(16 * 16, 1.0f), out(32 * 16, 5.0f);
  x[37] = value;
  const MatmulOptions options{.float8 = {Float8::kE4M3, Float8::kE5M2}};
  if (is_left)
    ops->matmul(tensor_of(out, {32, 16}), tensor_of(x, {32, 16}), tensor_of(ones, {16, 16}),
                options);
  else
    ops->matmul(tensor_of(out, {16, 32}), tensor_of(ones, {16, 16}), tensor_of(x, {16, 32}),
                options);
  CHECK(std::ranges::all_of(out, [&](float y) { return value == 0 ? y == 0 : std::isnan(y); }));
}

// What it gives, as a backend does it or by the operations around it.
struct Gradients {
  Floats dx, dweight, dbias, in;
  bool operator==(const Gradients&) const = default;
};
struct Layer {
  bool float8, outputs_first, add_dx, of_gelu, is_kept = false;
};
Gradients gradients_of(Ops& ops, const Layer& layer, bool by_parts) {
  const size_t n = 99, k = 80, m = 144;
  HalfArray in(random_floats(n * k, 1), DType::kBF16),
      weight(random_floats(k * m, 2), DType::kBF16);
  HalfArray dx(random_floats(n * k, 4), DType::kBF16), value(random_floats(n * k, 5), DType::kBF16);
  Floats dout = random_floats(n * m, 3), dweight(k * m, 0.5f), dbias(m, 0.5f);
  const Shape shape = layer.outputs_first ? Shape{m, k} : Shape{k, m};
  const LinearBackward call{.dx = dx.tensor({n, k}),
                            .dweight = tensor_of(dweight, shape),
                            .dbias = tensor_of(dbias, {m}),
                            .dout = tensor_of(dout, {n, m}),
                            .in = in.tensor({n, k}),
                            .weight = weight.tensor(shape),
                            .of_gelu = layer.of_gelu,
                            .activated = layer.is_kept ? value.tensor({n, k}) : Tensor(),
                            .accumulate = true,
                            .outputs_first = layer.outputs_first,
                            .add_dx = layer.add_dx,
                            .float8 = layer.float8};
  if (by_parts)
    ops.Ops::linear_backward(call);
  else
    ops.linear_backward(call);
  return {dx.floats(), dweight, dbias, in.floats()};
}

TEST_CASE("a linear layer's backward has the bits of its parts, in 8 bits and any order of sizes",
          "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const auto layer = GENERATE(values<Layer>({{true, false, false, true},
                                             {true, false, false, true, true},
                                             {true, false, false, false},
                                             {true, true, true, false},
                                             {true, true, false, true},
                                             {false, true, true, false},
                                             {false, true, false, false}}));
  CAPTURE(kind.name, layer.float8, layer.outputs_first, layer.add_dx, layer.of_gelu, layer.is_kept);
  TestBackend ops(kind);
  CHECK(gradients_of(*ops, layer, false) == gradients_of(*ops, layer, true));
}

}  // namespace
}  // namespace gxp

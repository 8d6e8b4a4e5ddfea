// Places of tensors' largest |x| (Tensor::largest): raised by what writes, read by products in 8 bits.
#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "kernels/elementwise.h"
#include "tests/cuda/on_device.h"
#include "tests/kernels/halves.h"
#include "tests/kernels/rotary.h"

namespace gxp {
namespace {

// Random tensors for one operation.
class Operands {
 public:
  // `places`: what the places of outputs begin with; none have one if it is empty.
  explicit Operands(std::optional<float> places = {}) : begin_(places) {}

  Tensor half(const Shape& shape) {
    halves_.emplace_back(random_floats(shape.count(), seed_++, 3.0f), DType::kBF16);
    return halves_.back().tensor(shape);
  }
  Tensor floats(const Shape& shape) {
    floats_.push_back(random_floats(shape.count(), seed_++, 3.0f));
    return tensor_of(floats_.back(), shape);
  }
  Tensor out(const Shape& shape) {
    const Tensor tensor = half(shape);
    outs_.push_back(&halves_.back());
    places_.push_back(begin_.value_or(0));
    return begin_ ? tensor.with_largest(&places_.back()) : tensor;
  }

  [[nodiscard]] std::vector<Floats> written() const {
    std::vector<Floats> all;
    for (const HalfArray* out : outs_) all.push_back(out->floats());
    return all;
  }
  [[nodiscard]] Floats places() const { return {places_.begin(), places_.end()}; }

 private:
  std::optional<float> begin_;
  unsigned seed_ = 1;
  std::deque<HalfArray> halves_;
  std::deque<Floats> floats_;
  std::vector<const HalfArray*> outs_;
  std::deque<float> places_;
};

struct Operation {
  const char* name;
  void (*run)(Ops& ops, Operands& of, size_t rows, size_t columns);
};
int head_size_of(size_t columns) { return columns % 16 == 0 ? 16 : int(columns); }

const std::vector<Operation> kOperations = {
    {"layernorm_forward",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.layernorm_forward(of.out({n, c}), of.floats({n}), of.floats({n}), of.floats({n, c}),
                             of.half({c}), of.half({c}), 1e-5f);
     }},
    {"rmsnorm_forward",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.rmsnorm_forward(of.out({n, c}), of.floats({n}), of.floats({n, c}), of.half({c}), 1e-5f);
     }},
    {"convert",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.convert(of.out({n, c}), of.floats({n, c}));
     }},
    {"round_and_sum",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.round_and_sum({.rounded = of.out({n, c})}, of.floats({n, c}));
       ops.round_and_sum({.rounded = of.out({n, c}), .column_sums = of.floats({c})},
                         of.floats({n, c}));
     }},
    {"layernorm_backward",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.layernorm_backward({.dx = of.floats({n, c}),
                               .dweight = of.floats({c}),
                               .dbias = of.floats({c}),
                               .dout = of.half({n, c}),
                               .x = of.floats({n, c}),
                               .mean = of.floats({n}),
                               .rstd = of.floats({n}),
                               .weight = of.half({c}),
                               .also = {.rounded = of.out({n, c}), .column_sums = of.floats({c})}});
     }},
    {"rmsnorm_backward",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.rmsnorm_backward({.dx = of.floats({n, c}),
                             .dout = of.half({n, c}),
                             .x = of.floats({n, c}),
                             .rstd = of.floats({n}),
                             .weight = of.half({c}),
                             .also = {.rounded = of.out({n, c})}});
     }},
    {"activation_forward",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.activation_forward(Activation::kGelu, of.out({n, c}), of.half({n, c}));
     }},
    {"activation_backward",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.activation_backward(Activation::kGeluTanh, of.out({n, c}), of.out({n, c}),
                               of.half({n, c}), of.half({n, c}));
       ops.activation_backward(Activation::kGeluTanh, of.out({n, c}), {}, of.half({n, c}),
                               of.half({n, c}));
     }},
    {"gated_forward",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.gated_forward(Activation::kSilu, of.out({n, c}), of.half({n, c}), of.half({n, c}));
     }},
    {"gated_backward",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       ops.gated_backward(Activation::kSilu, of.out({n, c}), of.out({n, c}), of.out({n, c}));
       ops.gated_gradients(Activation::kRelu, of.out({n, c}), of.out({n, c}), of.half({n, c}));
     }},
    {"rotate",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       const auto size = size_t(head_size_of(c));
       ops.rotate(of.out({1, n, c}), side_by_side(c / size, size), rotary_of(size, 1e4), -1);
     }},
    {"attention",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       const int heads = int(c) / head_size_of(c);
       const Shape sums = {1, size_t(heads), n};
       const Tensor out = of.out({1, n, c}), lse = of.floats(sums), qkv = of.half({1, n, 3 * c}),
                    dqkv = of.out({1, n, 3 * c});
       const GroupedHeads<ConstTensor> in = {qkv, qkv, qkv, heads, heads, HeadLayout::kBlocks};
       ops.attention_forward(out, lse, in);
       ops.attention_backward({dqkv, dqkv, dqkv, heads, heads, HeadLayout::kBlocks},
                              of.floats(sums), of.half({1, n, c}), in, out, lse);
     }},
    {"grouped_attention",
     [](Ops& ops, Operands& of, size_t n, size_t c) {
       const int heads = int(c) / head_size_of(c);
       const Shape wide = {1, n, c}, narrow = {1, n, c / size_t(heads)},
                   sums = {1, size_t(heads), n};
       const GroupedHeads<ConstTensor> in = {of.half(wide), of.half(narrow), of.half(narrow), heads,
                                             1};
       const Tensor out = of.out(wide), lse = of.floats(sums);
       ops.attention_forward(out, lse, in);
       ops.attention_backward({of.out(wide), of.out(narrow), of.out(narrow), heads, 1},
                              of.floats(sums), of.half(wide), in, out, lse);
     }},
};

float largest_of(const Floats& x) {
  float most = 0;
  for (const float value : x) most = std::max(most, std::fabs(value));
  return most;
}

TEST_CASE("what writes a tensor raises the place of its largest value, and writes the same bits") {
  const Operation operation = GENERATE(from_range(kOperations));
  // Alone and in fours; a row for a warp, and for a block.
  const auto [rows, columns] = GENERATE(table<size_t, size_t>({{37, 6}, {37, 64}, {3, 2064}}));
  CAPTURE(operation.name, rows, columns);
  const TestOps backend = make_cuda_test_ops({});
  Operands plain, found(0.0f), above(1e30f);
  for (Operands* operands : {&plain, &found, &above})
    operation.run(*backend.ops, *operands, rows, columns);
  CHECK(found.written() == plain.written());
  CHECK(above.written() == plain.written());
  Floats largest;
  for (const Floats& out : plain.written()) largest.push_back(largest_of(out));
  CHECK(found.places() == largest);
  CHECK(above.places() == Floats(largest.size(), 1e30f));
}

// The output of a product, and a layer's gradients, of operands with places or without.
std::vector<Floats> products_of(Ops& ops, HalfArray& x, HalfArray& dout, std::array<float, 2>* at) {
  const size_t n = 48, k = 32, m = 16;
  HalfArray weight(random_floats(k * m, 3), DType::kBF16), y(Floats(n * m), DType::kBF16),
      dx(Floats(n * k), DType::kBF16);
  Floats dweight(k * m);
  const auto with_place = [&](HalfArray& array, size_t columns, size_t i) {
    return array.tensor({n, columns}).with_largest(at == nullptr ? nullptr : &(*at)[i]);
  };
  ops.matmul(y.tensor({n, m}), with_place(x, k, 0), weight.tensor({k, m}),
             {.float8 = operands_of_forward(true)});
  ops.linear_backward({.dx = dx.tensor({n, k}),
                       .dweight = tensor_of(dweight, {k, m}),
                       .dout = with_place(dout, m, 1),
                       .in = with_place(x, k, 0),
                       .weight = weight.tensor({k, m}),
                       .float8 = true});
  return {y.floats(), dx.floats(), dweight};
}

TEST_CASE("products in 8 bits take an operand's largest value from its place") {
  const TestOps backend = make_cuda_test_ops({});
  HalfArray x(random_floats(48 * 32, 1, 5.0f), DType::kBF16),
      dout(random_floats(48 * 16, 2, 0.01f), DType::kBF16);
  std::array<float, 2> places = {largest_of(x.floats()), largest_of(dout.floats())};
  CHECK(products_of(*backend.ops, x, dout, &places) == products_of(*backend.ops, x, dout, nullptr));
  std::array<float, 2> unraised = {};
  for (const Floats& out : products_of(*backend.ops, x, dout, &unraised))
    CHECK(std::ranges::all_of(out, [](float value) { return std::isnan(value); }));
}

TEST_CASE("a place of zeros is not one that nobody raised, and a NaN or an infinity is seen") {
  const float value =
      GENERATE(0.0f, std::nanf(""), -std::numeric_limits<float>::infinity(), 3.4e38f);
  CAPTURE(value);
  const TestOps backend = make_cuda_test_ops({});
  Floats x(16 * 16);
  x[37] = value;
  float place = 0;
  HalfArray rounded(x, DType::kBF16), ones(Floats(16 * 16, 1.0f), DType::kBF16);
  const Tensor operand = rounded.tensor({16, 16}).with_largest(&place);
  backend.ops->convert(operand, tensor_of(x, {16, 16}));
  Floats out(16 * 16, 5.0f);
  backend.ops->matmul(tensor_of(out, {16, 16}), operand, ones.tensor({16, 16}),
                      {.float8 = operands_of_forward(true)});
  for (size_t i = 0; i < out.size(); ++i) {
    if (value == 0)
      CHECK(out[i] == 0);
    else
      CHECK(std::isnan(out[i]));
  }
}

}  // namespace
}  // namespace gxp

// Gradients of half types: updates and sums read them as the floats that they are.
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

constexpr std::array kValueTypes = {DType::kF32, DType::kBF16, DType::kF16};

Floats sum_of(const Floats& a, const Floats& b) {
  Floats sums(a.size());
  for (size_t i = 0; i < a.size(); ++i) sums[i] = a[i] + b[i];
  return sums;
}

TEST_CASE("every update has the bits that it has with the same gradients in f32", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const DType dtype = GENERATE(DType::kBF16, DType::kF16);
  const size_t count = GENERATE(0, 1, 1025, 5003);
  CAPTURE(kind.name, to_string(dtype), count);
  TestBackend ops(kind);
  HalfArray halves(random_floats(count, 1, 0.1f), dtype);
  const Floats values = halves.floats();
  const auto all_updates = [&](const ConstTensor& gradients) {
    std::vector<Floats> arrays;
    for (unsigned i = 0; i < 9; ++i) arrays.push_back(random_floats(count, i, 1.0f));
    for (float& second : arrays[2]) second *= second;
    std::vector<Tensor> t;
    for (Floats& array : arrays) t.push_back(tensor_of(array, {count}));
    const MomentumStep momentum = {0.9, 0.8, 0.7, 0.6, 0.5};
    ops->adamw(t[0], t[1], t[2], gradients, {0.01, 0.9, 0.99, 1e-8, 0.1, 3, 0.5});
    ops->sgd(t[3], t[4], gradients, {0.1, 0.2, momentum});
    ops->lion(t[5], t[6], gradients, {0.01, 0.9, 0.99, 0.2, 0.5});
    ops->momentum(t[7], t[8], gradients, momentum);
    arrays.push_back({float(ops->sum_of_squares(gradients))});
    return arrays;
  };
  CHECK(all_updates(halves.tensor({count})) == all_updates(tensor_of(values, {count})));
}

TEST_CASE("a sum of any two types is rounded once to any third", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const DType to = GENERATE(from_range(kValueTypes));
  const DType left = GENERATE(from_range(kValueTypes));
  const DType right = GENERATE(from_range(kValueTypes));
  const size_t count = GENERATE(0, 1, 1025, 3001);
  CAPTURE(to_string(to), to_string(left), to_string(right), count);
  TestBackend ops(kind);
  HalfArray a(random_floats(count, 1, 1.0f), left), b(random_floats(count, 2, 1.0f), right);
  HalfArray out(Floats(count), to), copy(Floats(count), to), sum = a;
  const Shape shape = {count};
  ops->add(out.tensor(shape), a.tensor(shape), b.tensor(shape));
  CHECK(out.floats() == rounded(sum_of(a.floats(), b.floats()), to));
  ops->convert(copy.tensor(shape), a.tensor(shape));
  CHECK(copy.floats() == rounded(a.floats(), to));
  ops->add(sum.tensor(shape), sum.tensor(shape), b.tensor(shape));
  CHECK(sum.floats() == rounded(sum_of(a.floats(), b.floats()), left));
}

}  // namespace
}  // namespace gxp

#include "lib/tools/checkpoints/compare.h"

#include <cmath>
#include <limits>

#include "lib/base/dtype.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

template <class Element>
NamedTensor tensor_of(StorageDType dtype, const std::vector<Element>& values,
                      const std::vector<uint64_t>& shape = {}) {
  TensorInfo info{"a", Role::kWeight, dtype, shape};
  if (shape.empty()) info.shape = {values.size()};
  return {std::move(info), [values](uint64_t begin, Memory out) {
            std::memcpy(out.data, values.data() + begin, out.bytes);
          }};
}

TensorComparison compare_one(const NamedTensor& a, const NamedTensor& b) {
  return compare_tensors({.tensors = {a}}, {.tensors = {b}}).at(0);
}

NamedTensor floats(const std::vector<float>& values) {
  return tensor_of(StorageDType::kF32, values);
}

}  // namespace

TEST_CASE("checkpoints are compared tensor by tensor, whatever the order", "[ckpt]") {
  const NamedTensors a{.tensors = {counting_tensor("same", {2}), counting_tensor("gone", {2}),
                                   counting_tensor("turned", {2, 3}), counting_tensor("m", {2})}};
  const NamedTensors b{
      .tensors = {counting_tensor("new", {1}), counting_tensor("m", {2}, 0, Role::kAdamM),
                  counting_tensor("turned", {3, 2}), counting_tensor("same", {2})}};
  std::vector<std::string> found;
  for (const TensorComparison& row : compare_tensors(a, b))
    found.push_back(fmt::format("{} {}", row.a.name, to_string(row.likeness)));
  CHECK(found == std::vector<std::string>{"same equal", "gone only in the first",
                                          "turned shapes differ", "m only in the first",
                                          "new only in the second", "m only in the second"});
}

TEST_CASE("the distance of two tensors is taken over all of their elements", "[ckpt]") {
  const TensorComparison row = compare_one(floats({1, 2, -4, 0}), floats({1, 2.5, -2, 0}));
  CHECK(row.likeness == Likeness::kValues);
  CHECK(row.differing == 2);
  CHECK(row.first == 1);
  CHECK(row.distance->max_absolute == 2);
  CHECK(row.distance->mean_absolute == 2.5 / 4);
  CHECK(row.distance->max_relative == 0.5);
  CHECK(row.distance->first_a == 2);
  CHECK(row.distance->first_b == 2.5);
}

TEST_CASE("a difference beyond the first block is found at its place", "[ckpt]") {
  std::vector<float> values(1'500'000, 1.5f);
  const NamedTensor a = floats(values);
  values[1'200'000] = 2.5f;
  const TensorComparison row = compare_one(a, floats(values));
  CHECK(row.first == 1'200'000);
  CHECK(row.differing == 1);
  CHECK(row.distance->max_absolute == 1);
}

TEST_CASE("elements of one type are compared by their bytes", "[ckpt]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(compare_one(floats({nan, infinity}), floats({nan, infinity})).likeness == Likeness::kEqual);
  const TensorComparison zeros = compare_one(floats({0.f}), floats({-0.f}));
  CHECK(zeros.differing == 1);
  CHECK(zeros.distance->max_absolute == 0);
  CHECK(std::isnan(compare_one(floats({nan, 1}), floats({1, 3})).distance->max_absolute));
  CHECK(compare_one(floats({infinity}), floats({1})).distance->max_relative == 1);
  const auto large = [](uint64_t value) {
    return tensor_of<uint64_t>(StorageDType::kU64, {value});
  };
  CHECK(compare_one(large(1ull << 60), large((1ull << 60) + 1)).differing == 1);
}

TEST_CASE("different types are compared by their values, where these can be calculated", "[ckpt]") {
  const auto brain = tensor_of<BFloat16>(StorageDType::kBF16, {BFloat16(1.f), BFloat16(3.f)});
  const TensorComparison row = compare_one(floats({1, 3.25}), brain);
  CHECK(row.likeness == Likeness::kDType);
  CHECK(row.differing == 1);
  CHECK(row.distance->max_absolute == 0.25);
  const auto small = tensor_of<uint8_t>(StorageDType::kF8E4M3, {1, 2});
  CHECK_FALSE(compare_one(floats({1, 2}), small).distance);
  CHECK(compare_one(small, tensor_of<uint8_t>(StorageDType::kF8E4M3, {1, 3})).first == 1);
  CHECK(compare_one(floats({}), floats({})).likeness == Likeness::kEqual);
}

}  // namespace gxp

#include "lib/tensor/tensor.h"

#include <numeric>
#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

TEST_CASE("a shape counts its elements, and its rows and columns as a matrix", "[tensor]") {
  struct Row {
    Shape shape;
    size_t count, rows, columns;
    int rank;
    const char* text;
  };
  const Row row = GENERATE(from_range(std::vector<Row>{
      {{}, 1, 1, 1, 0, "()"},
      {{7}, 7, 1, 7, 1, "(7)"},
      {{3, 5}, 15, 3, 5, 2, "(3, 5)"},
      {{4, 32, 64}, 8192, 128, 64, 3, "(4, 32, 64)"},
      {{2, 3, 4, 5}, 120, 24, 5, 4, "(2, 3, 4, 5)"},
      {{0, 5}, 0, 0, 5, 2, "(0, 5)"},
  }));
  CHECK(row.shape.count() == row.count);
  CHECK(row.shape.rows() == row.rows);
  CHECK(row.shape.columns() == row.columns);
  CHECK(row.shape.rank() == row.rank);
  CHECK(to_string(row.shape) == row.text);
}

TEST_CASE("shapes are equal if rank and sizes are", "[tensor]") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  CHECK_FALSE(Shape{2} == Shape{2, 1});
  CHECK_FALSE(Shape{} == Shape{0});
}

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST_CASE("rows of a tensor are a view of its outermost dimension", "[tensor]") {
  std::vector<float> values = counting(24);
  const Tensor tensor(memory_of(values), DType::kF32, {4, 2, 3});
  const Tensor part = tensor.rows(1, 2);
  CHECK(part.shape == Shape{2, 2, 3});
  CHECK(part.data<float>() == values.data() + 6);
  part.data<float>()[0] = -1;
  CHECK(values[6] == -1);
  CHECK(tensor.rows(4, 0).count() == 0);
}

TEST_CASE("a reshaped tensor views the same elements", "[tensor]") {
  std::vector<float> values = counting(24);
  const Tensor matrix = Tensor(memory_of(values), DType::kF32, {4, 2, 3}).reshape({8, 3});
  CHECK(matrix.shape == Shape{8, 3});
  CHECK(matrix.data<float>() == values.data());
}

TEST_CASE("a tensor may be read as a const tensor", "[tensor]") {
  std::vector<int32_t> values = {1, 2, 3};
  const Tensor tensor(memory_of(values), DType::kI32, {3});
  const ConstTensor view = tensor;
  CHECK(view.shape == tensor.shape);
  CHECK(view.dtype == DType::kI32);
  CHECK(view.data<int32_t>() == values.data());
}

TEST_CASE("a tensor over no elements is in order", "[tensor]") {
  std::vector<float> values;
  const Tensor tensor(memory_of(values), DType::kF32, {0, 5});
  CHECK(tensor.count() == 0);
  CHECK(tensor.rows(0, 0).shape == Shape{0, 5});
}

}  // namespace
}  // namespace gxp

#include "tests/cuda/emulation/cuda_runtime_api.h"
#include "tests/cuda/on_device.h"
#include "tests/kernels/backends.h"

namespace gxp {
namespace {

// Sums of the columns of 4096 rows, on a GPU of so many multiprocessors.
Floats column_sums_on(int multiprocessors) {
  set_emulated_multiprocessors(multiprocessors);
  const TestOps made = make_cuda_test_ops();
  set_emulated_multiprocessors(132);
  const Floats x = random_floats(4096 * 5, 1);
  Floats sums(5);
  made.ops->bias_backward(tensor_of(sums, {5}), tensor_of(x, {4096, 5}));
  return sums;
}

TEST_CASE("sums of columns have an order for each number of multiprocessors", "[emulation]") {
  const Floats expected = column_sums_on(132);
  CHECK(column_sums_on(132) == expected);
  CHECK(column_sums_on(1) != expected);
  for (const int multiprocessors : {1, 3, 170})
    CHECK(distance_in_eps(column_sums_on(multiprocessors), oracle::to_values(expected), 1) <
          roundings(4096, 4));
}

}  // namespace
}  // namespace gxp

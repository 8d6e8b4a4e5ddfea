// Which passes over memory the emulated cuBLASLt is spared.
#include <cublasLt.h>

#include "tests/cuda/on_device.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

// The products with `epilogue` in a layer of bf16 with a GELU behind it, forward and backward.
int products_with(uint32_t epilogue, size_t columns) {
  const TestOps backend = make_cuda_test_ops();
  const Shape in = {4, 8}, weight = {8, columns}, out = {4, columns};
  HalfArray x(random_floats(32, 1), DType::kBF16), w(random_floats(8 * columns, 2), DType::kBF16);
  HalfArray b(random_floats(columns, 3), DType::kBF16), argument(Floats(4 * columns), DType::kBF16);
  HalfArray value = argument, upstream = x, gradient = argument, back = w;
  const int before = emulated_products(epilogue);
  backend.ops->linear_gelu({.activated = value.tensor(out),
                            .x = argument.tensor(out),
                            .in = x.tensor(in),
                            .weight = w.tensor(weight),
                            .bias = b.tensor({columns})});
  backend.ops->linear_backward({.dx = gradient.tensor(out),
                                .dout = upstream.tensor(in),
                                .in = argument.tensor(out),
                                .weight = back.tensor({columns, 8}),
                                .of_gelu = true});
  return emulated_products(epilogue) - before;
}

TEST_CASE("a GELU and its slope are taken on the way out of a product, where rows allow it") {
  const uint32_t epilogue =
      GENERATE(uint32_t{CUBLASLT_EPILOGUE_GELU_AUX_BIAS}, uint32_t{CUBLASLT_EPILOGUE_DGELU});
  CHECK(products_with(epilogue, 16) == 1);
  CHECK(products_with(epilogue, 12) == 0);
}

}  // namespace
}  // namespace gxp

#include "kernels/cuda/gemm/cuda_float8.h"

#include <utility>

#include "kernels/cuda/gemm/float8_launch.h"
#include "lib/base/bytes.h"
#include "lib/device/cuda_check.h"

namespace gxp {
Float8Matrix make_float8(CudaQueue& queue, std::byte*& at, const ConstTensor& x, Float8 type,
                         Float8Ways ways) {
  const auto take = [&](size_t bytes) {
    return std::exchange(at, at + round_up(bytes, kProductCopyAlignment));
  };
  auto* const scale = reinterpret_cast<Float8Scale*>(take(sizeof(Float8Scale)));
  Float8Codes codes{.type = type};
  if (ways.as_stored) codes.as_stored = reinterpret_cast<uint8_t*>(take(x.count()));
  if (ways.transposed)
    codes.transposed =
        reinterpret_cast<uint8_t*>(take(float8_rows(x.shape.rows()) * x.shape.columns()));
  check_cuda(launch_largest(queue.stream(), x.count(), scale, array_of(x)), "launch largest");
  check_cuda(
      launch_float8(queue.stream(), x.shape.rows(), x.shape.columns(), codes, scale, array_of(x)),
      "launch float8");
  return {codes.as_stored, codes.transposed, &scale->factor, type};
}

}  // namespace gxp

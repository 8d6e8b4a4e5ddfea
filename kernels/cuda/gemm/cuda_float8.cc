#include "kernels/cuda/gemm/cuda_float8.h"

#include <utility>

#include "kernels/cuda/gemm/float8_launch.h"
#include "lib/base/bytes.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr size_t kAlignment = 256;  // lib/replay/device_terms.cc counts with it

size_t as_stored_bytes(const ConstTensor& x) { return round_up(x.count(), kAlignment); }
size_t transposed_bytes(const ConstTensor& x) {
  return round_up(float8_rows(x.shape.rows()) * x.shape.columns(), kAlignment);
}

}  // namespace

size_t float8_bytes(const ConstTensor& x, Float8Ways ways) {
  return kAlignment + (ways.as_stored ? as_stored_bytes(x) : 0) +
         (ways.transposed ? transposed_bytes(x) : 0);
}

Float8Matrix make_float8(CudaQueue& queue, std::byte*& at, const ConstTensor& x, Float8 type,
                         Float8Ways ways) {
  const auto take = [&](size_t bytes) { return std::exchange(at, at + bytes); };
  auto* const scale = reinterpret_cast<Float8Scale*>(take(kAlignment));
  Float8Codes codes{.type = type};
  if (ways.as_stored) codes.as_stored = reinterpret_cast<uint8_t*>(take(as_stored_bytes(x)));
  if (ways.transposed) codes.transposed = reinterpret_cast<uint8_t*>(take(transposed_bytes(x)));
  check_cuda(launch_largest(queue.stream(), x.count(), scale, array_of(x)), "launch largest");
  check_cuda(
      launch_float8(queue.stream(), x.shape.rows(), x.shape.columns(), codes, scale, array_of(x)),
      "launch float8");
  return {codes.as_stored, codes.transposed, &scale->factor, type};
}

}  // namespace gxp

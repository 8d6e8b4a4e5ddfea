#include "kernels/quantize.h"

#include "kernels/cpu/kernels.h"

namespace gxp {
namespace {

const QuantizeKernels& widest() {
  static const QuantizeKernels& kernels = cpu_kernels(choose_isa()).quantize;
  return kernels;
}

}  // namespace

void encode(std::byte* out, const float* x, size_t count, WireFormat format, float* residual) {
  widest().encode(out, x, count, format, residual);
}

void decode(float* out, const std::byte* encoded, size_t count, WireFormat format) {
  widest().decode(out, encoded, count, format);
}

void decode_and_add(float* out, const std::byte* encoded, size_t count, WireFormat format) {
  widest().decode_and_add(out, encoded, count, format);
}

}  // namespace gxp

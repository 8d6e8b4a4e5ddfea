#include "kernels/reduce_op.h"

#include <array>
#include <cmath>
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"sum", "prod", "min", "max", "avg"};

const FoldKernels& widest() { return cpu_kernels(choose_isa()).fold; }

template <class T>
void divide(Memory data, int64_t divisor) {
  GXP_ASSERT(divisor != 0);
  for (size_t at = 0; at < data.bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, data.data + at, sizeof value);
    value = static_cast<T>(value / divisor);
    std::memcpy(data.data + at, &value, sizeof value);
  }
}

}  // namespace

std::string_view to_string(ReduceOp op) { return kNames[static_cast<size_t>(op)]; }

std::optional<ReduceOp> parse_reduce_op(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ReduceOp>(i);
  }
  return std::nullopt;
}

void fold(Memory into, ConstMemory from, DType dtype, ReduceOp op) {
  GXP_ASSERT(into.space == MemorySpace::kHost && from.space == MemorySpace::kHost);
  GXP_ASSERT(into.bytes == from.bytes && into.bytes % size_of(dtype) == 0);
  widest().fold(into.data, from.data, into.bytes / size_of(dtype), dtype, op);
}

void scale(Memory data, DType dtype, double factor) {
  GXP_ASSERT(data.space == MemorySpace::kHost && data.bytes % size_of(dtype) == 0);
  const auto divisor = [&] { return static_cast<int64_t>(std::llround(1.0 / factor)); };
  switch (dtype) {
    case DType::kI64:
      return divide<int64_t>(data, divisor());
    case DType::kI32:
      return divide<int32_t>(data, divisor());
    case DType::kI8:
      return divide<int8_t>(data, divisor());
    case DType::kU8:
      return divide<uint8_t>(data, divisor());
    default:
      return widest().scale(data.data, data.bytes / size_of(dtype), dtype, factor);
  }
}

}  // namespace gxp

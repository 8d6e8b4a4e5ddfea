// Elements of f32, f16 or bf16 seen as f32, a tile at a time.
#pragma once

#include <cstring>

#include "kernels/quantize.h"
#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"
#include "lib/device/memory.h"

namespace gxp {

inline Memory memory_of(float* data, size_t count) {
  return {reinterpret_cast<std::byte*>(data), count * sizeof(float), MemorySpace::kHost};
}

inline WireFormat format_of(DType half) {
  return half == DType::kF16 ? WireFormat::kF16 : WireFormat::kBF16;
}

// The elements themselves if they are f32, else decoded into `tile`.
inline const float* as_floats(ConstMemory from, DType dtype, float* tile) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(from.data);
  decode(tile, from.data, from.bytes / size_of(dtype), format_of(dtype));
  return tile;
}

inline void add_floats(float* sum, ConstMemory from, DType dtype) {
  const size_t count = from.bytes / size_of(dtype);
  if (dtype == DType::kF32) return fold(memory_of(sum, count), from, dtype, ReduceOp::kSum);
  decode_and_add(sum, from.data, count, format_of(dtype));
}

inline void store_floats(Memory to, DType dtype, const float* from) {
  const size_t count = to.bytes / size_of(dtype);
  if (dtype != DType::kF32) return encode(to.data, from, count, format_of(dtype));
  if (count > 0) std::memcpy(to.data, from, to.bytes);
}

}  // namespace gxp

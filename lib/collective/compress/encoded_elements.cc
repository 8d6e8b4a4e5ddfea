#include "lib/collective/compress/encoded_elements.h"

#include <cstring>

#include "kernels/quantize.h"
#include "kernels/reduce_op.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

WireFormat format_of(DType half) {
  return half == DType::kF16 ? WireFormat::kF16 : WireFormat::kBF16;
}

// The elements themselves if they are f32, else decoded into `tile`.
const float* as_floats(ConstMemory from, DType dtype, float* tile) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(from.data);
  decode(tile, from.data, from.bytes / size_of(dtype), format_of(dtype));
  return tile;
}

}  // namespace

void check_codec_takes(const Codec& codec, DType dtype) {
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16)
    fail(ErrorKind::kUnavailable, "{} of {}: codecs take f32, f16 and bf16", codec.name,
         to_string(dtype));
}

void add_floats(float* sum, ConstMemory from, DType dtype) {
  const size_t count = from.bytes / size_of(dtype);
  if (dtype != DType::kF32) return decode_and_add(sum, from.data, count, format_of(dtype));
  const Memory to{reinterpret_cast<std::byte*>(sum), from.bytes, MemorySpace::kHost};
  fold(to, from, dtype, ReduceOp::kSum);
}

void store_floats(Memory to, DType dtype, const float* from) {
  const size_t count = to.bytes / size_of(dtype);
  if (dtype != DType::kF32) return encode(to.data, from, count, format_of(dtype));
  if (count > 0) std::memcpy(to.data, from, to.bytes);
}

void encode_elements(const Codec& codec, std::byte* out, ConstMemory from, DType dtype,
                     float* residual) {
  const size_t element_bytes = size_of(dtype);
  for_each_tile(from.bytes / element_bytes, [&](size_t offset, size_t count) {
    float tile[kCodecTile];
    const ConstMemory at = from.slice(offset * element_bytes, count * element_bytes);
    encode(out + codec.wire_bytes(offset), as_floats(at, dtype, tile), count, codec.format,
           residual == nullptr ? nullptr : residual + offset);
  });
}

void decode_elements(const Codec& codec, Memory to, DType dtype, const std::byte* encoded) {
  const size_t element_bytes = size_of(dtype);
  for_each_tile(to.bytes / element_bytes, [&](size_t offset, size_t count) {
    float tile[kCodecTile];
    decode(tile, encoded + codec.wire_bytes(offset), count, codec.format);
    store_floats(to.slice(offset * element_bytes, count * element_bytes), dtype, tile);
  });
}

}  // namespace gxp

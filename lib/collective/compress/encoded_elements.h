// Elements of f32, f16 or bf16 through a codec, which works on f32: a tile at a time, which stays in
// the first-level cache.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lib/base/dtype.h"
#include "lib/collective/compress/codec.h"
#include "lib/device/memory.h"

namespace gxp {

// Elements of a tile.
inline constexpr size_t kCodecTile = 2048;
static_assert(kCodecTile % kCodecBlock == 0);

// fn(offset, count) for each tile of `count` elements.
template <class Fn>
void for_each_tile(size_t count, const Fn& fn) {
  for (size_t offset = 0; offset < count; offset += kCodecTile)
    fn(offset, std::min(kCodecTile, count - offset));
}

// Throws kUnavailable for other types than f32, f16 and bf16.
void check_codec_takes(const Codec& codec, DType dtype);

void add_floats(float* sum, ConstMemory from, DType dtype);
void store_floats(Memory to, DType dtype, const float* from);

// `out` has codec.wire_bytes(elements); `residual` as in kernels/quantize.h, an f32 per element.
void encode_elements(const Codec& codec, std::byte* out, ConstMemory from, DType dtype,
                     float* residual = nullptr);
void decode_elements(const Codec& codec, Memory to, DType dtype, const std::byte* encoded);

}  // namespace gxp

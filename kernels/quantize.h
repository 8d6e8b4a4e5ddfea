// f32 as a narrower type on slow links: 2-byte floats, and blocks of 8- or 4-bit integers.
//
// A block holds kQuantizeBlock values x as integers q and one scale, a bf16:
//   scale = largest |x| / limit, rounded up; at least 2^-126      limit = 127 or 7
//   q = x / scale, rounded to nearest, ties to even               |x - q * scale| <= 0.5001 * scale
// The scale has 8 bits, so q * scale is exact in f32: results do not depend on whether a multiply
// and an add are fused, and every instruction set gives the same bits.
//
//   Layout     the scale (2 bytes, little-endian), then words of 32 bits: word j has element
//              j + g * (words) in its bits [g * width, (g + 1) * width), two's complement. So a
//              vector packs and unpacks all groups g with shifts alone.
//   Tail       the last block is filled up with zeros and travels whole.
//   Not finite a block with a NaN or an infinity decodes to NaN throughout; a value within 1% of
//              the largest float may decode to an infinity. f16 overflows to infinity at 65520.
//   Residual   if not null, it is added to x first, and becomes the loss of encoding:
//              x + residual - decoded; 0 where that is not finite.
//   Memory     host; `x`, `residual` and outputs do not overlap. Any alignment of encoded bytes.
//   Threads    run on the caller's, with the CPU's widest vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gxp {

enum class WireFormat : uint8_t { kBF16, kF16, kInt8, kInt4 };

inline constexpr size_t kQuantizeBlock = 128;

// Bytes of `count` encoded elements.
constexpr size_t encoded_bytes(WireFormat format, size_t count) {
  if (format == WireFormat::kBF16 || format == WireFormat::kF16) return 2 * count;
  const size_t block_bytes =
      2 + (format == WireFormat::kInt8 ? kQuantizeBlock : kQuantizeBlock / 2);
  return (count + kQuantizeBlock - 1) / kQuantizeBlock * block_bytes;
}

void encode(std::byte* out, const float* x, size_t count, WireFormat format,
            float* residual = nullptr);
void decode(float* out, const std::byte* encoded, size_t count, WireFormat format);
// out[i] += decoded[i]. NaN results are canonical.
void decode_and_add(float* out, const std::byte* encoded, size_t count, WireFormat format);

}  // namespace gxp

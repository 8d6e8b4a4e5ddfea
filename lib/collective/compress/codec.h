// How elements travel over slow links: one table. Codecs work on f32; each loses precision within a
// bound, and nothing else: what comes back is a number for every number.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/quantize.h"

namespace gxp {

struct Codec {
  std::string_view name;
  std::string_view summary;
  WireFormat format;  // kernels/quantize.h has its encode(), decode() and decode_and_add()
  // |x - decoded| <= error * the largest |x| of the kCodecBlock values around x; for values of
  // normal size.
  double error;

  [[nodiscard]] size_t wire_bytes(size_t count) const { return encoded_bytes(format, count); }
};

// A buffer may be encoded in parts of a multiple of this many elements: the parts' bytes, end to
// end, are the whole's.
inline constexpr size_t kCodecBlock = kQuantizeBlock;

std::span<const Codec> codecs();

// Null if there is none of that name.
const Codec* find_codec(std::string_view name);

}  // namespace gxp

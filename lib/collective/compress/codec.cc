#include "lib/collective/compress/codec.h"

#include <algorithm>
#include <array>

namespace gxp {
namespace {

// Half a unit in the last place; for the blocks half a step, whose scale may be rounded up by 2^-7.
constexpr std::array kCodecs = {
    Codec{"bf16", "bfloat16: half the bytes", WireFormat::kBF16, 0x1p-8},
    Codec{"f16", "half precision: half the bytes; above 65504 infinite", WireFormat::kF16, 0x1p-11},
    Codec{"int8", "8-bit integers in blocks of 128 with a scale: a quarter of the bytes",
          WireFormat::kInt8, 0.504 / 127},
    Codec{"int4", "4-bit integers in blocks of 128 with a scale: an eighth of the bytes",
          WireFormat::kInt4, 0.504 / 7},
};

}  // namespace

std::span<const Codec> codecs() { return kCodecs; }

const Codec* find_codec(std::string_view name) {
  const auto found = std::find_if(kCodecs.begin(), kCodecs.end(),
                                  [&](const Codec& codec) { return codec.name == name; });
  return found == kCodecs.end() ? nullptr : &*found;
}

}  // namespace gxp

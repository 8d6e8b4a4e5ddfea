#include "lib/collective/compress/codec.h"

#include <algorithm>
#include <array>

namespace gxp {
namespace {

// Half a unit in the last place; for the blocks half a step, whose scale may be rounded up by 2^-7.
constexpr std::array kCodecs = {
#define GXP_CODEC(name, ...) Codec{#name, __VA_ARGS__},
#include "lib/config/codecs.inc"
#undef GXP_CODEC
};

}  // namespace

std::span<const Codec> codecs() { return kCodecs; }

const Codec* find_codec(std::string_view name) {
  const auto found = std::find_if(kCodecs.begin(), kCodecs.end(),
                                  [&](const Codec& codec) { return codec.name == name; });
  return found == kCodecs.end() ? nullptr : &*found;
}

}  // namespace gxp

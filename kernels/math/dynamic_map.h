// Numbers in [-1, 1] or [0, 1] as 8 bits: the dynamic tree quantisation of Dettmers,
// arXiv:1511.04561, with the codes and values of bitsandbytes' create_dynamic_map(). The values of
// a decade are evenly spaced; the decade below has half as many:
//
//   values      0; in decade d = 0 .. 6, from 10^(d - 7) to 10^(d - 6), the middles of n equal
//               parts, n = 2^d, or 2^(d + 1) without a sign; 1
//   with a sign the middles' negatives, too, but not -1
//
// A code is the number of a value in ascending order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/math/host_device.h"

namespace gxp {

struct alignas(16) DynamicMap {
  // The magnitudes' bits 16 to 30, of which the upper are the exponent, from 2^-23 to 1: a cell has
  // at most one border between two values in it.
  static constexpr uint32_t kFirstCell = (127 - 23) << 7;
  static constexpr size_t kCells = (23 << 7) + 1;

  float values[256];      // by code
  int zero;               // the code of 0
  uint8_t below[kCells];  // the value nearest to a cell's least magnitude, counted from 0's
};

// Whether the magnitude is nearer to value i + 1 than to value i, both counted from 0's.
GXP_HOST_DEVICE constexpr bool is_above(float magnitude, int i, const DynamicMap& map) {
  const float* const up = map.values + map.zero;
  return map.zero + i < 255 && magnitude > (up[i] + up[i + 1]) * 0.5f;
}

constexpr DynamicMap make_dynamic_map(bool has_sign) {
  DynamicMap map{};
  map.zero = has_sign ? 127 : 0;
  int code = map.zero + 1;
  double decade = 1e-6;
  for (int d = 0; d < 7; ++d, decade *= 10) {
    const int parts = has_sign ? 1 << d : 2 << d;
    for (int part = 0; part < parts; ++part, ++code) {
      map.values[code] = float(decade * (0.1 + 0.9 * (part + 0.5) / parts));
      if (has_sign) map.values[2 * map.zero - code] = -map.values[code];
    }
  }
  map.values[255] = 1;
  int nearest = 0;
  for (size_t cell = 1; cell < DynamicMap::kCells; ++cell) {
    const auto least = std::bit_cast<float>((DynamicMap::kFirstCell + uint32_t(cell)) << 16);
    while (is_above(least, nearest, map)) ++nearest;
    map.below[cell] = uint8_t(nearest);
  }
  return map;
}

// The code of the nearest value; of two that are as near, the one nearer to 0. |x| <= 1; what is
// more, or NaN, becomes some code.
GXP_HOST_DEVICE uint8_t nearest_code(float x, const DynamicMap& map) {
  const uint32_t word = bits_as<uint32_t>(x);
  const auto magnitude = bits_as<float>(word & 0x7fffffffu);
  const int cell = int((word & 0x7fffffffu) >> 16) - int(DynamicMap::kFirstCell);
  const int last = int(DynamicMap::kCells) - 1;
  const int nearest = map.below[cell < 0 ? 0 : cell > last ? last : cell];
  const int away = nearest + int(is_above(magnitude, nearest, map));
  const bool is_negative = word >> 31 != 0;
  const int down = away < map.zero ? away : map.zero;
  return uint8_t(is_negative ? map.zero - down : map.zero + away);
}

// The factor that scales the moments of a block to [-1, 1]; `most` is the largest magnitude.
GXP_HOST_DEVICE float inverse_scale(float most) { return most < 0x1p-126f ? 0.0f : 1.0f / most; }

// The code of a second moment, times its block's inverse_scale(). A nonzero moment never becomes 0,
// since the update is divided by its square root.
GXP_HOST_DEVICE uint8_t second_moment_code(float moment, float inverse, const DynamicMap& map) {
  const uint8_t code = nearest_code(moment * inverse, map);
  return code == 0 && moment > 0 ? uint8_t{1} : code;
}

}  // namespace gxp

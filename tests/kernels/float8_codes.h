// The numbers that the codes of kernels/math/float8.h stand for.
#pragma once

#include "kernels/math/float8.h"

namespace gxp {

// A code of e5m2 above 57344 is infinite or NaN, e4m3's last one is NaN.
inline float decode_float8(uint8_t code, Float8Format format) {
  const uint32_t magnitude = code & 0x7fu;
  const uint32_t mantissas = 1u << format.mantissa_bits;
  float size = float(magnitude) * float8_power_of_two(1 - format.bias - format.mantissa_bits);
  if (magnitude >= mantissas)
    size = bits_as<float>((magnitude << (23 - format.mantissa_bits)) +
                          (uint32_t(127 - format.bias) << 23));
  if (format.mantissa_bits == 2 && magnitude >= 0x7cu)
    size = bits_as<float>(magnitude == 0x7cu ? 0x7f800000u : 0x7fc00000u);
  if (magnitude == 0x7fu) size = bits_as<float>(0x7fc00000u);
  return (code & 0x80u) != 0 ? -size : size;
}

}  // namespace gxp

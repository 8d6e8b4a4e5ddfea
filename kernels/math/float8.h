// Floats of 8 bits, as the Open Compute Project specifies them (OFP8, 2023; Micikevicius et al.,
// arXiv:2209.05433), and the scale that brings a tensor into their range.
//
//   e4m3  3 bits of mantissa: up to 448, multiples of 2^-9; a NaN, no infinities
//   e5m2  2 bits of mantissa: up to 57344, multiples of 2^-16
//
// A scale is a power of two, so to multiply by it changes no digit; and the largest number of a
// tensor comes to lie within a factor of two of the type's, below it, so that nothing saturates.
#pragma once

#include <cstdint>

#include "kernels/math/float8_type.h"
#include "kernels/math/host_device.h"

namespace gxp {

// The largest number of either type is 1.75 * 2^most_exponent.
struct Float8Format {
  int mantissa_bits, bias, most_exponent;
};

GXP_HOST_DEVICE Float8Format format_of(Float8 type) {
  return type == Float8::kE4M3 ? Float8Format{3, 7, 8} : Float8Format{2, 15, 15};
}

GXP_HOST_DEVICE float float8_power_of_two(int exponent) {
  return bits_as<float>(uint32_t(exponent + 127) << 23);
}

// The scale of a tensor whose largest |x| has these bits; NaN if that is NaN or infinite. At most
// 2^63, so that the inverse of two scales, 2^-126, is a normal number.
GXP_HOST_DEVICE float float8_scale(uint32_t largest, Float8 type) {
  constexpr int kMostPower = 63;
  if (largest >= 0x7f800000u) return bits_as<float>(0x7fc00000u);
  const int exponent = int(largest >> 23) - 127;
  const bool is_above = (largest & 0x7fffffu) > 0x600000u;  // 1.75
  const int power = format_of(type).most_exponent - exponent - int(is_above);
  return float8_power_of_two(power < kMostPower ? power : kMostPower);
}

// The nearest number of the type, ties to even. |x| is at most the type's largest, or x is NaN,
// which stays.
template <class F>
GXP_HOST_DEVICE F round_to_float8(F x, Float8Format format) {
  using Bits = typename BitsOf<F>::Type;
  const int dropped = 23 - format.mantissa_bits;
  const F number = x == x ? x : F{};
  const Bits word = bits_as<Bits>(number);
  const Bits sign = word & INT32_MIN;
  const Bits magnitude = word & INT32_MAX;
  const Bits kept = (magnitude >> dropped) & 1;
  const Bits normal = (magnitude + ((1 << (dropped - 1)) - 1) + kept) & -(1 << dropped);
  // Below the least normal number: adding 1.5 * 2^23 steps leaves a multiple of a step.
  const float least = float8_power_of_two(1 - format.bias);
  const float shift = 1.5f * float8_power_of_two(dropped + 1 - format.bias);
  const F size = bits_as<F>(magnitude);
  const F tiny = (size + shift) - shift;
  const F rounded = size < least ? tiny : bits_as<F>(normal);
  return x == x ? bits_as<F>(static_cast<Bits>(bits_as<Bits>(rounded) | sign)) : x;
}

// The code of a number of the type, and of NaN.
GXP_HOST_DEVICE uint8_t encode_float8(float x, Float8Format format) {
  const uint32_t word = bits_as<uint32_t>(x);
  const uint32_t sign = (word >> 24) & 0x80u;
  const uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  const float size = bits_as<float>(magnitude);
  if (size < float8_power_of_two(1 - format.bias))
    return uint8_t(sign |
                   uint32_t(size * float8_power_of_two(format.bias - 1 + format.mantissa_bits)));
  const uint32_t normal = magnitude >> (23 - format.mantissa_bits);
  return uint8_t(sign | (normal - (uint32_t(127 - format.bias) << format.mantissa_bits)));
}

}  // namespace gxp

// Conversions of single half-precision values, in integer arithmetic: what a GPU's instructions do.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

// bfloat16, rounded to nearest, ties to even; a NaN stays one.
GXP_HOST_DEVICE uint16_t bf16_of_float(float x) {
  const auto word = bits_as<uint32_t>(x);
  const uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  return uint16_t((word & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}

// IEEE 754 binary16.
GXP_HOST_DEVICE float float_of_binary16(uint16_t half) {
  constexpr uint32_t kBias = 112u << 23;  // between the exponents of the two formats
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + kBias;
  const uint32_t finite_or_nan = magnitude >= 0x7c00u ? normal + kBias : normal;
  const float tiny = float(magnitude) * 0x1p-24f;
  const uint32_t wide = magnitude < 0x400u ? bits_as<uint32_t>(tiny) : finite_or_nan;
  return bits_as<float>(wide | (half & 0x8000u) << 16);
}

// Rounded to nearest, ties to even; infinity from 65520 on; a NaN stays one.
GXP_HOST_DEVICE uint16_t binary16_of_float(float x) {
  const auto word = bits_as<uint32_t>(x);
  const uint32_t magnitude = word & 0x7fffffffu;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // Below 2^-14: adding 0.5 rounds to a multiple of 2^-24 and leaves it in the low bits.
  const uint32_t tiny = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t half = magnitude < 0x38800000u ? tiny : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? 0x7fffu : half;
  return uint16_t(half | (word >> 16 & 0x8000u));
}

}  // namespace gxp

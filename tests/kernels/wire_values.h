// What the codecs of kernels/quantize.h are tested with.
#pragma once

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/quantize.h"
#include "tests/kernels/backends.h"

namespace gxp {

inline constexpr std::array kWireFormats = {WireFormat::kBF16, WireFormat::kF16, WireFormat::kInt8,
                                            WireFormat::kInt4};
inline constexpr std::array<size_t, 8> kWireCounts = {0, 1, 7, 127, 128, 129, 256, 1009};

// Values as gradients have them, and those that are hard to encode.
struct Distribution {
  std::string name;
  float (*at)(std::mt19937& random, size_t i);
};
inline const std::vector<Distribution> kWireDistributions = {
    {"uniform", [](std::mt19937& r, size_t) { return float(int32_t(r())) * 0x1p-31f; }},
    {"mixed magnitudes",
     [](std::mt19937& r, size_t i) {
       return std::ldexp(float(int32_t(r())) * 0x1p-31f, int(i % 24) - 12);
     }},
    {"zeros", [](std::mt19937&, size_t) { return 0.0f; }},
    {"one spike", [](std::mt19937&, size_t i) { return i % 100 == 3 ? 1000.0f : 0.5f; }},
    {"ties", [](std::mt19937& r, size_t i) { return i % 64 == 0 ? 127 : float(r() % 254) / 2; }},
    {"subnormal", [](std::mt19937& r, size_t) { return float(int(r() % 99)) * 0x1p-149f; }},
    {"huge", [](std::mt19937& r, size_t) { return float(int32_t(r())) * 0x1p96f; }},
};

inline Floats values_of(const Distribution& distribution, size_t count) {
  std::mt19937 random(17);
  Floats x(count);
  for (size_t i = 0; i < count; ++i) x[i] = distribution.at(random, i);
  return x;
}

}  // namespace gxp

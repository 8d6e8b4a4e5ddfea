// Catch2, version 2 or 3, under one include; and what every test may want in its checks.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <array>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {

inline std::string_view to_string(ErrorKind kind) {
  constexpr std::array<std::string_view, 9> kNames = {
      "mismatch", "usage", "config", "unavailable", "io", "corrupt", "peer", "device", "internal"};
  return kNames[static_cast<size_t>(kind)];
}

inline bool contains(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

}  // namespace gxp

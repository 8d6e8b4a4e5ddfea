// Catch2, version 2 or 3, under one include.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <string_view>

namespace gxp {

inline bool contains(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

}  // namespace gxp

// A line of an account of memory.
#pragma once

#include <cstdint>
#include <string>

namespace gxp {

// One line of an estimate: bytes and their reason.
struct Term {
  std::string component;  // "gradients"
  std::string formula;    // "2 ceil(P / S)"
  std::string numbers;    // the same with numbers: "2 x ceil(7000000000 / 8)"
  uint64_t bytes = 0;
  std::string source;
};

}  // namespace gxp

// What a call throws, as text.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/catch.h"

namespace gxp {

// "KIND: MESSAGE", or "" if act() throws nothing.
template <class Act>
std::string error_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return fmt::format("{}: {}", to_string(error.kind()), error.what());
  }
  return "";
}

}  // namespace gxp

// The error that a call ends with.
#pragma once

#include <optional>
#include <string>

#include "lib/base/error.h"

namespace gxp {

struct Caught {
  std::optional<ErrorKind> kind;  // empty: the call did not throw
  std::string message;
  [[nodiscard]] bool says(std::string_view text) const {
    return message.find(text) != std::string::npos;
  }
};

template <class Call>
Caught error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

}  // namespace gxp

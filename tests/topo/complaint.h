// What a call complains of.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {

// The message of the Error that the call throws, which must be of that kind; "" if it throws none.
template <class Call>
std::string complaint(ErrorKind kind, Call call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
}

}  // namespace gxp

// How a failure ends the program.
#pragma once

#include <exception>
#include <string>

namespace gxp {

struct Ending {
  std::string line;  // for stderr: "gxp: error: ...\n", as visible() shows it
  int code;          // exit code
};

// How an exception that nothing has handled ends the program; `cause` is not null.
Ending ending_of(const std::exception_ptr& cause);

}  // namespace gxp

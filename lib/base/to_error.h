// Any exception as an Error.
#pragma once

#include <exception>

#include "lib/base/error.h"

namespace gxp {

// The Error itself, or one of the kind that fits: kIo for lack of memory and failed system calls,
// kInternal for unexpected exceptions. `cause` is not null.
Error to_error(const std::exception_ptr& cause);

}  // namespace gxp

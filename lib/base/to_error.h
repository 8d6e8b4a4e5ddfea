// Any exception as an Error.
#pragma once

#include <exception>

#include "lib/base/error.h"

namespace gxp {

// The Error itself, or one of the kind that fits: kIo for want of memory and what the system refused,
// kInternal for what nothing expects. `cause` is not null.
Error to_error(const std::exception_ptr& cause);

}  // namespace gxp

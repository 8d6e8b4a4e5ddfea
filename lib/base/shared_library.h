// Functions of a library that is loaded at run time.
#pragma once

#include <dlfcn.h>

#include <string_view>

#include "lib/base/error.h"

namespace gxp {

// Sets `function` to the one of that name in a library of dlopen(). Throws kUnavailable: "load NCCL
// from FILE: it has no NAME".
template <class Function>
void find_function(void* library, std::string_view what, std::string_view file, const char* name,
                   Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr)
    fail(ErrorKind::kUnavailable, "load {} from {}: it has no {}", what, file, name);
}

}  // namespace gxp

// Functions of a library that is loaded at run time.
#pragma once

#include <dlfcn.h>

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {

// Loads a library for the rest of the process. Throws kUnavailable: "load NCCL: REASON", and after a
// semicolon the remedy, if there is one.
inline void* open_library(std::string_view what, const std::string& file,
                          std::string_view remedy = "") {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library != nullptr) return library;
  const char* const why = ::dlerror();
  fail(ErrorKind::kUnavailable, "load {}: {}{}{}", what, why == nullptr ? file : why,
       remedy.empty() ? "" : "; ", remedy);
}

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

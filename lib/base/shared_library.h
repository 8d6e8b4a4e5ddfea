// Functions of a library that is loaded at run time, for the rest of the process.
#pragma once

#include <dlfcn.h>

#include <string>
#include <string_view>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

class SharedLibrary {
 public:
  // `file` as dlopen() takes it. Throws kUnavailable: "load NCCL: REASON", and after a semicolon the
  // remedy, if there is one.
  SharedLibrary(std::string what, std::string file, std::string_view remedy = "")
      : what_(std::move(what)),
        file_(std::move(file)),
        library_(::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
    if (library_ != nullptr) return;
    const char* const why = ::dlerror();
    fail(ErrorKind::kUnavailable, "load {}: {}{}{}", what_, why == nullptr ? file_ : why,
         remedy.empty() ? "" : "; ", remedy);
  }

  // Sets `function` to the one of that name. Throws kUnavailable: "load NCCL from FILE: it has no
  // NAME".
  template <class Function>
  void find(const char* name, Function*& function) const {
    find_optional(name, function);
    if (function == nullptr)
      fail(ErrorKind::kUnavailable, "load {} from {}: it has no {}", what_, file_, name);
  }
  // Null: it has none.
  template <class Function>
  void find_optional(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
  }

 private:
  std::string what_;
  std::string file_;
  void* library_;
};

}  // namespace gxp

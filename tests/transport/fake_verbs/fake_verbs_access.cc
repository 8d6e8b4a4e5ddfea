#include <dlfcn.h>

#include "tests/transport/fake_verbs/fake_verbs.h"

namespace gxp {

namespace {

void* library() { return ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

}  // namespace

FakeVerbs* fake_verbs() {
  void* const loaded = library();
  if (loaded == nullptr) return nullptr;
  auto* const access = reinterpret_cast<FakeVerbs* (*)()>(::dlsym(loaded, "gxp_fake_verbs"));
  return access == nullptr ? nullptr : access();
}

}  // namespace gxp

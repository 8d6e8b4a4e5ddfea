// Makes this machine one without the optional libraries: an auditor of the dynamic linker
// (rtld-audit(7)) that finds none of them, loaded by LD_AUDIT into every program that a test
// starts.
#include <link.h>

#include <cstring>

namespace {

constexpr const char* kRefused[] = {"libcuda.so",      "libnccl.so",    "libcublas",    "libcudnn",
                                    "libnvidia-ml.so", "libibverbs.so", "librdmacm.so", "libmpi",
                                    "libmpich",        "libnvrtc"};

}  // namespace

extern "C" unsigned la_version(unsigned version) { return version; }

extern "C" char* la_objsearch(const char* name, uintptr_t*, unsigned) {
  const char* const slash = std::strrchr(name, '/');
  const char* const file = slash == nullptr ? name : slash + 1;
  for (const char* refused : kRefused) {
    if (std::strncmp(file, refused, std::strlen(refused)) == 0) return nullptr;
  }
  return const_cast<char*>(name);
}

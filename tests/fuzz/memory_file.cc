#include "tests/fuzz/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace gxp {

std::string path_of_bytes(const std::string& bytes) {
  static const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (::ftruncate(file, 0) != 0 ||
      ::pwrite(file, bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace gxp

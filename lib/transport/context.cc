#include "lib/transport/context.h"

#include <sys/stat.h>

#include <fstream>

#include "lib/base/error.h"

namespace gxp {

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (boot.empty() || stat("/proc/self/ns/net", &network) != 0) return "unknown";
  return fmt::format("{} {}", boot, network.st_ino);
}

}  // namespace gxp

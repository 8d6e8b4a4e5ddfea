#include "lib/base/host_caches.h"

#include <unistd.h>

#include <fstream>

namespace gxp {
namespace {

void take(long bytes, size_t& cache) {
  if (bytes > 0) cache = size_t(bytes);
}

// "2048K"; 0: not to be read.
long read_kib(const std::string& file) {
  long kib = 0;
  char unit = 0;
  std::ifstream(file) >> kib >> unit;
  return unit == 'K' ? kib << 10 : unit == 'M' ? kib << 20 : 0;
}

}  // namespace

HostCaches read_caches(const std::string& directory) {
  HostCaches caches;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  take(sysconf(_SC_LEVEL1_DCACHE_SIZE), caches.l1_bytes);
  take(sysconf(_SC_LEVEL2_CACHE_SIZE), caches.l2_bytes);
#endif
  for (int index = 0; index < 8; ++index) {
    const std::string cache = directory + "/index" + std::to_string(index);
    int level = 0;
    std::string type;
    std::ifstream(cache + "/level") >> level;
    std::ifstream(cache + "/type") >> type;
    if (type != "Data" && type != "Unified") continue;
    if (level == 1) take(read_kib(cache + "/size"), caches.l1_bytes);
    if (level == 2) take(read_kib(cache + "/size"), caches.l2_bytes);
  }
  return caches;
}

const HostCaches& own_caches() {
  static const HostCaches caches = read_caches();
  return caches;
}

}  // namespace gxp

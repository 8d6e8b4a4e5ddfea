// The data caches of a core of this host. Buffers that should stay in a cache are cut to its size.
#pragma once

#include <cstddef>
#include <string>

namespace gxp {

struct HostCaches {
  size_t l1_bytes = size_t{32} << 10;
  size_t l2_bytes = size_t{256} << 10;
};

// The caches of the first CPU, from the OS's files in `directory`, else from the C library.
// Sizes that neither has stay as above; no current server has less. Cost: some 50 us; own_caches()
// pays it once.
HostCaches read_caches(const std::string& directory = "/sys/devices/system/cpu/cpu0/cache");
const HostCaches& own_caches();

}  // namespace gxp

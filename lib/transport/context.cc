#include "lib/transport/context.h"

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <bitset>
#include <cstring>
#include <fstream>

#include "lib/base/error.h"
#include "lib/base/numbering.h"
#include "lib/transport/backoff.h"

namespace gxp {

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (boot.empty() || stat("/proc/self/ns/net", &network) != 0) return "unknown";
  return fmt::format("{} {}", boot, network.st_ino);
}

std::vector<int> number_hosts(const Hosts& hosts) { return number_if_different(std::span(hosts)); }
std::vector<int> number_hosts(std::span<const int> hosts) { return number_if_different(hosts); }

std::string cpus_of_this_rank() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails where there are more CPUs than the set has room for; then none are scarce.
  if (sched_getaffinity(0, sizeof set, &set) != 0) std::memset(&set, 0xff, sizeof set);
  return {reinterpret_cast<const char*>(&set), sizeof set};
}

int count_cpus(const std::vector<std::string>& cpus_of_ranks, const Hosts& hosts,
               const std::string& host) {
  std::bitset<8 * sizeof(cpu_set_t)> together;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != host) continue;
    for (size_t i = 0; i < std::min(together.size(), 8 * cpus_of_ranks[rank].size()); ++i) {
      if ((cpus_of_ranks[rank][i / 8] >> (i % 8) & 1) != 0) together.set(i);
    }
  }
  return int(together.count());
}

bool is_oversubscribed(const TransportContext& context) {
  const int cpus = context.host_cpus > 0 ? context.host_cpus : usable_cpus();
  return std::count(context.hosts.begin(), context.hosts.end(), context.host) > cpus;
}

}  // namespace gxp

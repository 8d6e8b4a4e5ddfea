#include "lib/transport/context.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "lib/base/error.h"
#include "lib/transport/backoff.h"

namespace gxp {

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (boot.empty() || stat("/proc/self/ns/net", &network) != 0) return "unknown";
  return fmt::format("{} {}", boot, network.st_ino);
}

std::vector<int> number_hosts(const Hosts& hosts) {
  std::map<std::string, int> numbers;
  std::vector<int> by_rank;
  for (const std::string& host : hosts) {
    by_rank.push_back(numbers.emplace(host, int(numbers.size())).first->second);
  }
  return numbers.size() > 1 ? by_rank : std::vector<int>{};
}

bool is_crowded(const TransportContext& context, const Hosts& hosts) {
  return std::count(hosts.begin(), hosts.end(), context.host) > usable_cpus();
}

}  // namespace gxp

// Ranks of one process that a compressed collective takes to be on several hosts.
#pragma once

#include <memory>
#include <vector>

#include "lib/collective/compress/host_groups.h"
#include "lib/device/device.h"
#include "tests/collective/run_ranks.h"

namespace gxp {

// Hosts and ranks of each, host by host.
struct HostsAndRanks {
  int hosts = 1;
  int ranks_of_host = 1;
  [[nodiscard]] int size() const { return hosts * ranks_of_host; }
  [[nodiscard]] std::vector<int> host_of_ranks() const {
    std::vector<int> hosts_of(static_cast<size_t>(size()));
    for (size_t rank = 0; rank < hosts_of.size(); ++rank)
      hosts_of[rank] = static_cast<int>(rank) / ranks_of_host;
    return hosts_of;
  }
};
inline const std::vector<HostsAndRanks> kHostsAndRanks = {{1, 1}, {2, 1}, {3, 1}, {5, 1},
                                                          {1, 2}, {2, 2}, {3, 2}, {2, 4}};

// fn(groups, device) on each rank.
template <class Fn>
auto run_on(const HostsAndRanks& world, const Fn& fn) {
  const std::vector<int> hosts = world.host_of_ranks();
  const std::unique_ptr<Device> device = make_cpu_device();
  return run_ranks(
      world.size(),
      [&](Communicator& comm) {
        HostGroups groups = split_by_host(comm, hosts);
        return fn(groups, *device);
      },
      {}, device.get());
}

}  // namespace gxp

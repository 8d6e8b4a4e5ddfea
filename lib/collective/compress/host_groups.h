// The groups of a collective that is compressed between hosts. The two levels are the ranks of this
// host, which fast links join, and the ranks with the same place on each host, which slow links join.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lib/collective/communicator.h"
#include "lib/collective/compress/host_parts.h"

namespace gxp {

// Ranks are world_size = intra_host * inter_host; this rank is number intra_host.rank() of host
// inter_host.rank(). If each group owns a transport and a thread, traffic within hosts and between
// hosts overlaps; groups from split_by_host() share one of both.
struct HostGroups {
  Communicator* all = nullptr;  // borrowed
  std::unique_ptr<Communicator> intra_host;
  std::unique_ptr<Communicator> inter_host;

  [[nodiscard]] HostPlace place() const;
};

// By comm.hosts(), or by `hosts`, the host of each rank numbered from 0. All ranks call it; `comm`
// outlives the groups. Throws kUnavailable if the hosts have unequal numbers of ranks.
HostGroups split_by_host(Communicator& comm);
HostGroups split_by_host(Communicator& comm, std::span<const int> hosts);

// Throws kUnavailable, "compress `what`: ...", if ranks are not numbered host by host.
void check_numbered_by_host(const HostGroups& groups, std::string_view what);

}  // namespace gxp

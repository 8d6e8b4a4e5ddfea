// The two groups of a hierarchical collective: the ranks of this host, which fast links join, and
// the ranks with the same place on each host, which slow links join.
#pragma once

#include <memory>
#include <span>

#include "lib/collective/communicator.h"

namespace gxp {

// Ranks are world_size = intra_host * inter_host; this rank is number intra_host.rank() of host
// inter_host.rank(). If each group owns a transport and a thread, traffic within hosts and between
// hosts overlaps; groups from split_by_host() share one of both.
struct HostGroups {
  Communicator* all = nullptr;  // borrowed
  std::unique_ptr<Communicator> intra_host;
  std::unique_ptr<Communicator> inter_host;
};

// By comm.hosts(), or by `hosts`, the host of each rank numbered from 0. All ranks call it; `comm`
// outlives the groups. Throws kUnavailable if the hosts have unequal numbers of ranks.
HostGroups split_by_host(Communicator& comm);
HostGroups split_by_host(Communicator& comm, std::span<const int> hosts);

}  // namespace gxp

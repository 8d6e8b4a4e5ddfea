// The two groups of a hierarchical collective: the ranks of this host, which fast links join, and
// the ranks with the same place on each host, which slow links join.
#pragma once

#include <memory>
#include <span>

#include "lib/collective/communicator.h"

namespace gxp {

// Ranks are world_size = within * between; this rank is number within.rank() of host
// between.rank(). Groups made otherwise than by split_by_host() may have a transport and thread of
// their own each: then what travels within the host overlaps what travels between hosts.
struct HostGroups {
  Communicator* all = nullptr;  // borrowed
  std::unique_ptr<Communicator> within;
  std::unique_ptr<Communicator> between;
  // Whether rank = between.rank() * within.world_size() + within.rank().
  bool in_order = true;
};

// By comm.hosts(), or by `hosts`, the host of each rank numbered from 0. All ranks call it; `comm`
// outlives the groups. Throws kUnavailable if the hosts have unequal numbers of ranks.
HostGroups split_by_host(Communicator& comm);
HostGroups split_by_host(Communicator& comm, std::span<const int> hosts);

// Payload bytes that this rank sends in such a call, by the formula of the algorithm that runs it.
uint64_t bytes_sent(const Communicator& comm, const Call& call);

}  // namespace gxp

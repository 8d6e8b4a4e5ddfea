#include "lib/collective/compress/host_groups.h"

#include "lib/collective/algorithm/hosts.h"

namespace gxp {

HostGroups split_by_host(Communicator& comm) { return split_by_host(comm, comm.hosts()); }

HostGroups split_by_host(Communicator& comm, std::span<const int> host_of_ranks) {
  const HostsOfCall hosts(CallShape{.world_size = comm.world_size(), .hosts = host_of_ranks});
  if (!hosts.are_equal()) {
    fail(ErrorKind::kUnavailable,
         "compress between {} hosts: they have {} to {} ranks; start equally many on each, or use "
         "no codec",
         hosts.count(), hosts.smallest(), hosts.largest());
  }
  const int host = hosts.host_of(comm.rank());
  const int index = hosts.index_of(comm.rank());
  HostGroups groups;
  groups.all = &comm;
  groups.within = comm.split(host, comm.rank());
  groups.between = comm.split(index, host);
  for (int rank = 0; rank < comm.world_size(); ++rank) {
    groups.in_order &= rank == hosts.host_of(rank) * hosts.smallest() + hosts.index_of(rank);
  }
  return groups;
}

uint64_t bytes_sent(const Communicator& comm, const Call& call) {
  const Plan plan = comm.plan(call);
  const CallShape shape{.world_size = comm.world_size(),
                        .count = call.count,
                        .root = call.root,
                        .channels = plan.channels,
                        .segment = plan.segment_bytes / size_of(call.dtype),
                        .hosts = comm.hosts()};
  return plan.algorithm->elements_sent(comm.rank(), shape) * size_of(call.dtype);
}

}  // namespace gxp

#include "lib/collective/compress/host_groups.h"

#include "lib/base/error.h"
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
  groups.intra_host = comm.split(host, comm.rank());
  groups.inter_host = comm.split(index, host);
  return groups;
}

HostPlace HostGroups::place() const {
  return {.hosts = inter_host->world_size(),
          .ranks_of_host = intra_host->world_size(),
          .host = inter_host->rank(),
          .index = intra_host->rank()};
}

void check_numbered_by_host(const HostGroups& groups, std::string_view what) {
  const HostPlace place = groups.place();
  const int first = place.host * place.ranks_of_host;
  if (groups.all->rank() == first + place.index) return;
  fail(ErrorKind::kUnavailable,
       "compress {}: rank {} is on host {}, but ranks {} on are on another; number the ranks host "
       "by host, or use no codec",
       what, groups.all->rank(), place.host, first);
}

}  // namespace gxp

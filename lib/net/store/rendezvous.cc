#include "lib/net/store/rendezvous.h"

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/net/store/rendezvous_point.h"

namespace gxp {

void Rendezvous::close(Deadline deadline) {
  store->close();
  if (server) server->wait_goodbyes(deadline);
}

Rendezvous join_job(const RankIdentity& identity, const Environment& environment, Deadline deadline,
                    Deadline::Duration silence) {
  raise_descriptor_limit();  // ranks need sockets, and strangers must not take the last
  RendezvousPoint point = arrange_rendezvous(identity, environment, deadline);
  const bool several_hosts = identity.local_world_size < identity.world_size;
  if (several_hosts && identity.local_rank == 0 && leads_to_itself(point.store.host))
    log_warn(
        "rank 0's address {} means the local host on every host; if ranks run on several hosts, "
        "give them an address of rank 0's host: --master HOST:PORT or MASTER_ADDR",
        point.store.host);
  Rendezvous job{point.secret, point.store.host, nullptr, nullptr};
  Endpoint endpoint = point.store;
  if (identity.rank == 0) {
    job.server = std::make_unique<StoreServer>(std::move(point.listener), identity.world_size,
                                               job.secret, silence);
    endpoint.port = job.server->port();
    if (!is_loopback(endpoint.host)) endpoint.host = "";  // right here, by IPv6 or IPv4
  }
  job.store = std::make_unique<Store>(endpoint, identity.rank, identity.world_size, job.secret,
                                      deadline, silence);
  return job;
}

}  // namespace gxp

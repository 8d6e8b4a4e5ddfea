#include "lib/net/rendezvous.h"

namespace gxp {

void Rendezvous::close(Deadline deadline) {
  store->close();
  if (server) server->wait_goodbyes(deadline);
}

Rendezvous join_job(const RankIdentity& identity, const Environment& environment,
                    Deadline deadline) {
  const Secret secret = identity.world_size == 1
                            ? find_secret(environment).value_or(Secret::generate())
                            : require_secret(environment);
  raise_descriptor_limit();  // ranks need sockets, and strangers must not take the last
  Rendezvous job;
  Endpoint endpoint{identity.master_addr, identity.master_port};
  if (identity.rank == 0) {
    job.server = std::make_unique<StoreServer>(open_store_listener(identity, environment),
                                               identity.world_size, secret);
    endpoint.port = job.server->port();
    if (!is_loopback(endpoint.host)) endpoint.host = "";  // right here, by IPv6 or IPv4
  }
  job.store =
      std::make_unique<Store>(endpoint, identity.rank, identity.world_size, secret, deadline);
  return job;
}

}  // namespace gxp

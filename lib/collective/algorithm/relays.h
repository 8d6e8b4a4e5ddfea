// Relays carry chunks between hosts: on each host one rank, the relay, handles what that host
// gives to rank r or gets from it. It is the rank of r's index on its own host, modulo the size of
// the relay's host; so on its own host r is its own relay.
#pragma once

#include <vector>

#include "lib/collective/algorithm/hosts.h"

namespace gxp {

// Seen from one rank. Data sent to the peers "after" are received from the peers "before", in the
// same order. No two ranks start with the same peer.
class Relays {
 public:
  Relays(int rank, const CallShape& shape);
  // The other ranks of this host.
  [[nodiscard]] std::vector<int> peers_after() const;
  [[nodiscard]] std::vector<int> peers_before() const;
  // The other hosts.
  [[nodiscard]] std::vector<int> hosts_after() const;
  [[nodiscard]] std::vector<int> hosts_before() const;
  // The ranks whose relay on this host is `peer`.
  [[nodiscard]] std::vector<int> served_by(int peer) const;
  // The ranks of `host` whose relay on this host is this rank.
  [[nodiscard]] std::vector<int> served_on(int host) const;
  // This rank's relay on `host`.
  [[nodiscard]] int relay_on(int host) const;

 private:
  void add_served(int index, int host, std::vector<int>& ranks) const;
  HostsOfCall hosts_;
  int host_;
  int index_;
};

}  // namespace gxp

#include "lib/collective/algorithm/hierarchical.h"

#include <algorithm>
#include <map>
#include <vector>

#include "lib/collective/algorithm/binomial.h"
#include "lib/collective/algorithm/halving_doubling.h"
#include "lib/collective/algorithm/hosts.h"
#include "lib/collective/algorithm/rank_subset.h"
#include "lib/collective/algorithm/ring.h"

namespace gxp {
namespace {

// self + 1, self + 2, ... or self - 1, self - 2, ..., modulo size, without self.
std::vector<int> others(int self, int size, int direction) {
  std::vector<int> indices;
  for (int i = 1; i < size; ++i) indices.push_back((self + size + direction * i) % size);
  return indices;
}

// Relays carry chunks between hosts: on each host one rank, the relay, handles what that host
// gives to rank r or gets from it. It is the rank of r's index on its own host, modulo the size of
// the relay's host; so on its own host r is its own relay.
//
// Seen from one rank. Data sent to the peers "after" are received from the peers "before", in the
// same order. No two ranks start with the same peer.
class Relays {
 public:
  Relays(int rank, const CallShape& shape)
      : hosts_(shape), host_(hosts_.host_of(rank)), index_(hosts_.index_of(rank)) {}

  // The other ranks of this host.
  [[nodiscard]] std::vector<int> peers_after() const { return peers(1); }
  [[nodiscard]] std::vector<int> peers_before() const { return peers(-1); }
  // The other hosts.
  [[nodiscard]] std::vector<int> hosts_after() const { return others(host_, hosts_.count(), 1); }
  [[nodiscard]] std::vector<int> hosts_before() const { return others(host_, hosts_.count(), -1); }
  // The ranks whose relay on this host is `peer`.
  [[nodiscard]] std::vector<int> served_by(int peer) const {
    std::vector<int> ranks;
    for (int host = 0; host < hosts_.count(); ++host) {
      add_served(hosts_.index_of(peer), host, ranks);
    }
    return ranks;
  }
  // The ranks of `host` whose relay on this host is this rank.
  [[nodiscard]] std::vector<int> served_on(int host) const {
    std::vector<int> ranks;
    add_served(index_, host, ranks);
    return ranks;
  }
  // This rank's relay on `host`.
  [[nodiscard]] int relay_on(int host) const {
    return hosts_.member(host, index_ % hosts_.size(host));
  }

 private:
  [[nodiscard]] std::vector<int> peers(int direction) const {
    std::vector<int> peers = others(index_, hosts_.size(host_), direction);
    for (int& peer : peers) peer = hosts_.member(host_, peer);
    return peers;
  }
  void add_served(int index, int host, std::vector<int>& ranks) const {
    for (int i = index; i < hosts_.size(host); i += hosts_.size(host_)) {
      ranks.push_back(hosts_.member(host, i));
    }
  }

  HostsOfCall hosts_;
  int host_;
  int index_;
};

// The orders of channels within a host, by its ranks' indices.
std::vector<int> rings_within(const HostsOfCall& hosts, int host, std::span<const int> rings) {
  std::vector<int> within;
  for (const int rank : rings) {
    if (hosts.host_of(rank) == host) within.push_back(hosts.index_of(rank));
  }
  return within;
}

// The calls that make up a call of an all-reduce, a broadcast or a reduce, seen from one rank.
struct Levels {
  Levels(int rank, const CallShape& shape)
      : hosts(shape),
        host(hosts.host_of(rank)),
        index(hosts.index_of(rank)),
        leaders(hosts.leaders(shape.root)),
        leader(leaders[size_t(host)]),
        rings(rings_within(hosts, host, shape.orders.rings)),
        inside{.world_size = hosts.size(host),
               .count = shape.count,
               .root = hosts.index_of(leader),
               .channels = shape.channels,
               .orders = {.rings = rings}},
        chunk(Chunks(inside)[index]),
        chunk_across{.world_size = hosts.count(), .count = chunk.count},
        leaders_across{
            .world_size = hosts.count(), .count = shape.count, .root = hosts.host_of(shape.root)} {}
  HostsOfCall hosts;
  int host;
  int index;
  std::vector<int> leaders;
  int leader;
  std::vector<int> rings;  // of inside
  CallShape inside;
  Range chunk;  // of those inside
  CallShape chunk_across;
  CallShape leaders_across;
};

}  // namespace

void hierarchical_all_reduce(Primitives& comm, const CallShape& shape) {
  const Levels levels(comm.rank(), shape);
  RankSubset inside(comm, levels.hosts.members(levels.host));
  if (levels.hosts.are_equal()) {
    RankSubset across(comm, levels.hosts.across(levels.index), levels.chunk.begin);
    ring_reduce_scatter(inside, levels.inside);
    halving_doubling_all_reduce(across, levels.chunk_across);
    ring_all_gather(inside, levels.inside);
    return;
  }
  binomial_reduce(inside, levels.inside);
  if (comm.rank() == levels.leader) {
    RankSubset leaders(comm, levels.leaders);
    halving_doubling_all_reduce(leaders, levels.leaders_across);
  }
  binomial_broadcast(inside, levels.inside);
}

void hierarchical_broadcast(Primitives& comm, const CallShape& shape) {
  const Levels levels(comm.rank(), shape);
  if (comm.rank() == levels.leader) {
    RankSubset leaders(comm, levels.leaders);
    binomial_broadcast(leaders, levels.leaders_across);
  }
  RankSubset inside(comm, levels.hosts.members(levels.host));
  binomial_broadcast(inside, levels.inside);
}

void hierarchical_reduce(Primitives& comm, const CallShape& shape) {
  const Levels levels(comm.rank(), shape);
  RankSubset inside(comm, levels.hosts.members(levels.host));
  binomial_reduce(inside, levels.inside);
  if (comm.rank() != levels.leader) return;
  RankSubset leaders(comm, levels.leaders);
  binomial_reduce(leaders, levels.leaders_across);
}

void hierarchical_reduce_scatter(Primitives& comm, const CallShape& shape) {
  const int rank = comm.rank();
  const Chunks chunks(shape);
  const Relays relays(rank, shape);
  for (int peer : relays.peers_after()) {
    for (int r : relays.served_by(peer)) comm.send(peer, chunks[r]);
  }
  for (int peer : relays.peers_before()) {
    for (int r : relays.served_by(rank)) comm.recv_and_fold(peer, chunks[r]);
  }
  for (int host : relays.hosts_after()) {
    for (int r : relays.served_on(host)) comm.send(r, chunks[r]);
  }
  for (int host : relays.hosts_before()) {
    comm.recv_and_fold(relays.relay_on(host), chunks[rank]);
  }
}

void hierarchical_all_gather(Primitives& comm, const CallShape& shape) {
  const int rank = comm.rank();
  const Chunks chunks(shape);
  const Relays relays(rank, shape);
  for (int host : relays.hosts_after()) comm.send(relays.relay_on(host), chunks[rank]);
  for (int host : relays.hosts_before()) {
    for (int r : relays.served_on(host)) comm.recv(r, chunks[r]);
  }
  for (int peer : relays.peers_after()) {
    for (int r : relays.served_by(rank)) comm.send(peer, chunks[r]);
  }
  for (int peer : relays.peers_before()) {
    for (int r : relays.served_by(peer)) comm.recv(peer, chunks[r]);
  }
}

int hierarchical_all_reduce_rounds(const CallShape& shape) {
  const HostsOfCall hosts(shape);
  const int across = halving_doubling_all_reduce_rounds({.world_size = hosts.count()});
  const CallShape inside{.world_size = hosts.largest(), .channels = shape.channels};
  if (hosts.are_equal()) return ring_all_reduce_rounds(inside) + across;
  return 2 * log2_rounds(inside) + across;
}

int hierarchical_tree_rounds(const CallShape& shape) {
  const HostsOfCall hosts(shape);
  return log2_rounds({.world_size = hosts.count()}) + log2_rounds({.world_size = hosts.largest()});
}

// As if all hosts took each step together: inside, as many rounds as the busiest relay serves
// ranks, for each peer; across, as many as one serves on another host, for each host.
int hierarchical_relay_rounds(const CallShape& shape) {
  const HostsOfCall hosts(shape);
  const auto divide_up = [](int a, int b) { return (a + b - 1) / b; };
  std::map<int, int> hosts_of_size;
  for (int host = 0; host < hosts.count(); ++host) ++hosts_of_size[hosts.size(host)];
  int inside = 0;
  for (const auto& [size, unused] : hosts_of_size) {
    int served = 0;
    for (const auto& [other, number] : hosts_of_size) served += number * divide_up(other, size);
    inside = std::max(inside, (size - 1) * served);
  }
  return inside + (hosts.count() - 1) * divide_up(hosts.largest(), hosts.smallest());
}

uint64_t hierarchical_all_gather_sent(int rank, const CallShape& shape) {
  const Chunks chunks(shape);
  const Relays relays(rank, shape);
  uint64_t served = 0;
  for (int r : relays.served_by(rank)) served += chunks[r].count;
  return relays.hosts_after().size() * chunks[rank].count + relays.peers_after().size() * served;
}

}  // namespace gxp

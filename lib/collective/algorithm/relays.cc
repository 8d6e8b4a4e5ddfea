#include "lib/collective/algorithm/relays.h"

namespace gxp {
namespace {

// self + 1, self + 2, ... or self - 1, self - 2, ..., modulo size, without self.
std::vector<int> others(int self, int size, int direction) {
  std::vector<int> indices;
  for (int i = 1; i < size; ++i) indices.push_back((self + size + direction * i) % size);
  return indices;
}

}  // namespace

Relays::Relays(int rank, const CallShape& shape)
    : hosts_(shape), host_(hosts_.host_of(rank)), index_(hosts_.index_of(rank)) {}

std::vector<int> Relays::peers_after() const {
  std::vector<int> peers = others(index_, hosts_.size(host_), 1);
  for (int& peer : peers) peer = hosts_.member(host_, peer);
  return peers;
}

std::vector<int> Relays::peers_before() const {
  std::vector<int> peers = others(index_, hosts_.size(host_), -1);
  for (int& peer : peers) peer = hosts_.member(host_, peer);
  return peers;
}

std::vector<int> Relays::hosts_after() const { return others(host_, hosts_.count(), 1); }
std::vector<int> Relays::hosts_before() const { return others(host_, hosts_.count(), -1); }

std::vector<int> Relays::served_by(int peer) const {
  std::vector<int> ranks;
  for (int host = 0; host < hosts_.count(); ++host) {
    add_served(hosts_.index_of(peer), host, ranks);
  }
  return ranks;
}

std::vector<int> Relays::served_on(int host) const {
  std::vector<int> ranks;
  add_served(index_, host, ranks);
  return ranks;
}

void Relays::add_served(int index, int host, std::vector<int>& ranks) const {
  for (int i = index; i < hosts_.size(host); i += hosts_.size(host_)) {
    ranks.push_back(hosts_.member(host, i));
  }
}

int Relays::relay_on(int host) const { return hosts_.member(host, index_ % hosts_.size(host)); }

}  // namespace gxp

#include "lib/collective/algorithm/couriers.h"

namespace gxp {
namespace {

// self + 1, self + 2, ... or self - 1, self - 2, ..., modulo size, without self.
std::vector<int> others(int self, int size, int direction) {
  std::vector<int> indices;
  for (int i = 1; i < size; ++i) indices.push_back((self + size + direction * i) % size);
  return indices;
}

}  // namespace

Couriers::Couriers(int rank, const CallShape& shape)
    : hosts_(shape), host_(hosts_.host_of(rank)), index_(hosts_.index_of(rank)) {}

std::vector<int> Couriers::peers_after() const {
  std::vector<int> peers = others(index_, hosts_.size(host_), 1);
  for (int& peer : peers) peer = hosts_.member(host_, peer);
  return peers;
}

std::vector<int> Couriers::peers_before() const {
  std::vector<int> peers = others(index_, hosts_.size(host_), -1);
  for (int& peer : peers) peer = hosts_.member(host_, peer);
  return peers;
}

std::vector<int> Couriers::hosts_after() const { return others(host_, hosts_.count(), 1); }
std::vector<int> Couriers::hosts_before() const { return others(host_, hosts_.count(), -1); }

std::vector<int> Couriers::served_by(int peer) const {
  std::vector<int> ranks;
  for (int host = 0; host < hosts_.count(); ++host) {
    add_served(hosts_.index_of(peer), host, ranks);
  }
  return ranks;
}

std::vector<int> Couriers::served_on(int host) const {
  std::vector<int> ranks;
  add_served(index_, host, ranks);
  return ranks;
}

void Couriers::add_served(int index, int host, std::vector<int>& ranks) const {
  for (int i = index; i < hosts_.size(host); i += hosts_.size(host_)) {
    ranks.push_back(hosts_.member(host, i));
  }
}

int Couriers::courier_on(int host) const { return hosts_.member(host, index_ % hosts_.size(host)); }

}  // namespace gxp

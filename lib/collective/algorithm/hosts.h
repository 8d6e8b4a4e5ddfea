// Which ranks share a host, or what a plan takes for one (RankOrders::groups).
#pragma once

#include <vector>

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

// Hosts are numbered from 0, as the shape has them; their ranks, by rank, have an index.
class HostsOfCall {
 public:
  explicit HostsOfCall(const CallShape& shape);
  [[nodiscard]] int count() const { return int(members_.size()); }
  [[nodiscard]] const std::vector<int>& members(int host) const { return members_[size_t(host)]; }
  [[nodiscard]] int member(int host, int index) const { return members(host)[size_t(index)]; }
  [[nodiscard]] int size(int host) const { return int(members(host).size()); }
  [[nodiscard]] int smallest() const { return smallest_; }  // sizes
  [[nodiscard]] int largest() const { return largest_; }
  [[nodiscard]] bool are_equal() const { return smallest_ == largest_; }
  [[nodiscard]] int host_of(int rank) const { return hosts_[size_t(rank)]; }
  [[nodiscard]] int index_of(int rank) const { return indices_[size_t(rank)]; }
  // Each host's rank with that index, modulo the host's size.
  [[nodiscard]] std::vector<int> across(int index) const;
  // Each host's first rank; on the root's host the root.
  [[nodiscard]] std::vector<int> leaders(int root) const;

 private:
  std::vector<std::vector<int>> members_;  // of each host
  std::vector<int> hosts_;                 // of each rank
  std::vector<int> indices_;               // of each rank
  int smallest_ = 0;
  int largest_ = 0;
};

}  // namespace gxp

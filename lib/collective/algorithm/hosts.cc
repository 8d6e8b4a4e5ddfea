#include "lib/collective/algorithm/hosts.h"

#include <algorithm>

namespace gxp {

HostsOfCall::HostsOfCall(const CallShape& shape) {
  const auto world_size = size_t(shape.world_size);
  const auto hosts_of_ranks = shape.orders.groups.empty() ? shape.hosts : shape.orders.groups;
  const int last = hosts_of_ranks.empty() ? 0 : *std::ranges::max_element(hosts_of_ranks);
  members_.resize(size_t(last) + 1);
  for (size_t rank = 0; rank < world_size; ++rank) {
    const int host = hosts_of_ranks.empty() ? 0 : hosts_of_ranks[rank];
    members_[size_t(host)].push_back(int(rank));
  }
  std::erase_if(members_, [](const auto& members) { return members.empty(); });
  hosts_.resize(world_size);
  indices_.resize(world_size);
  smallest_ = shape.world_size;
  for (int host = 0; host < count(); ++host) {
    for (int i = 0; i < size(host); ++i) {
      const auto rank = size_t(member(host, i));
      hosts_[rank] = host;
      indices_[rank] = i;
    }
    smallest_ = std::min(smallest_, size(host));
    largest_ = std::max(largest_, size(host));
  }
}

std::vector<int> HostsOfCall::across(int index) const {
  std::vector<int> ranks;
  for (const auto& members : members_) {
    ranks.push_back(members[size_t(index) % members.size()]);
  }
  return ranks;
}

std::vector<int> HostsOfCall::leaders(int root) const {
  std::vector<int> ranks = across(0);
  ranks[size_t(host_of(root))] = root;
  return ranks;
}

}  // namespace gxp

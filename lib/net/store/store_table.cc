#include "lib/net/store/store_table.h"

#include "lib/net/socket/frame.h"

namespace gxp {

StoreTable::StoreTable(int world_size, Answer answer)
    : world_size_(world_size), answer_(std::move(answer)) {}

void StoreTable::set(const std::string& key, std::string value) {
  const std::string& kept = values_[key] = std::move(value);
  const auto waiting = waiters_.extract(key);
  if (waiting.empty()) return;
  for (const Waiter& waiter : waiting.mapped()) answer_(waiter.rank, waiter.request, kept);
}

void StoreTable::get(int rank, uint32_t request, const std::string& key) {
  const auto found = values_.find(key);
  if (found != values_.end()) return answer_(rank, request, found->second);
  waiters_[key].push_back({rank, request});
}

void StoreTable::gather(int rank, uint32_t request, const std::string& name, std::string value) {
  auto& row = gathers_[name];
  row.insert_or_assign(rank, Contribution{request, std::move(value)});
  if (int(row.size()) < world_size_) return;
  std::vector<std::string> values;
  for (auto& [_, contribution] : row) values.push_back(std::move(contribution.value));
  const std::string packed = pack_strings(values);
  for (const auto& [member, contribution] : row) answer_(member, contribution.request, packed);
  gathers_.erase(name);
}

std::vector<int> StoreTable::missing(const std::string& name) const {
  const auto row = gathers_.find(name);
  std::vector<int> ranks;
  for (int rank = 0; rank < world_size_; ++rank) {
    if (row == gathers_.end() || !row->second.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace gxp

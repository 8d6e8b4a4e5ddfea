// The content of the store: keys with values, clients that wait for a key, and gathers in progress.
// Pure: requests in, answers out; no socket. lib/net/store/store.h says what the operations mean.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/net/socket/frame.h"

namespace gxp {

class StoreTable {
 public:
  // Gives `value` to the waiting request `request` of `rank`.
  using Answer = std::function<void(int rank, uint32_t request, const std::string& value)>;

  StoreTable(int world_size, Answer answer) : world_size_(world_size), answer_(std::move(answer)) {}

  void set(const std::string& key, std::string value) {
    const std::string& kept = values_[key] = std::move(value);
    const auto waiting = waiters_.extract(key);
    if (waiting.empty()) return;
    for (const auto& [rank, request] : waiting.mapped()) answer_(rank, request, kept);
  }

  void get(int rank, uint32_t request, const std::string& key) {
    const auto found = values_.find(key);
    if (found != values_.end()) return answer_(rank, request, found->second);
    waiters_[key].emplace_back(rank, request);
  }

  // When all ranks have come, each is answered pack_strings() of the values in order of rank, and
  // the name is free again. A rank's second value before that replaces its first.
  void gather(int rank, uint32_t request, const std::string& name, std::string value) {
    auto& row = gathers_[name];
    row.insert_or_assign(rank, Contribution{request, std::move(value)});
    if (int(row.size()) < world_size_) return;
    std::vector<std::string> values;
    for (auto& [_, contribution] : row) values.push_back(std::move(contribution.value));
    const std::string packed = pack_strings(values);
    for (const auto& [member, contribution] : row) answer_(member, contribution.request, packed);
    gathers_.erase(name);
  }

  // The ranks that the gather still waits for.
  [[nodiscard]] std::vector<int> missing(const std::string& name) const {
    const auto row = gathers_.find(name);
    std::vector<int> ranks;
    for (int rank = 0; rank < world_size_; ++rank) {
      if (row == gathers_.end() || !row->second.contains(rank)) ranks.push_back(rank);
    }
    return ranks;
  }

 private:
  struct Contribution {
    uint32_t request;
    std::string value;
  };

  int world_size_;
  Answer answer_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<std::pair<int, uint32_t>>> waiters_;  // rank, request by key
  std::map<std::string, std::map<int, Contribution>> gathers_;            // by name, then rank
};

}  // namespace gxp

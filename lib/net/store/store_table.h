// What the store holds: keys with values, those who wait for a key, and gathers under way.
// Pure: requests in, answers out; no socket. lib/net/store/store.h says what the operations mean.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gxp {

class StoreTable {
 public:
  // Gives `value` to the waiting request `request` of `rank`.
  using Answer = std::function<void(int rank, uint32_t request, const std::string& value)>;

  StoreTable(int world_size, Answer answer);

  void set(const std::string& key, std::string value);
  void get(int rank, uint32_t request, const std::string& key);
  // When all ranks have come, each is answered pack_strings() of the values in order of rank, and
  // the name is free again. A rank's second value before that replaces its first.
  void gather(int rank, uint32_t request, const std::string& name, std::string value);
  // The ranks that the gather still waits for.
  [[nodiscard]] std::vector<int> missing(const std::string& name) const;

 private:
  struct Waiter {
    int rank;
    uint32_t request;
  };
  struct Contribution {
    uint32_t request;
    std::string value;
  };

  int world_size_;
  Answer answer_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Waiter>> waiters_;          // by key
  std::map<std::string, std::map<int, Contribution>> gathers_;  // by name, then rank
};

}  // namespace gxp

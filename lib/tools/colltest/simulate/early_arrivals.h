// Messages that have arrived before their receiver waits for them: a queue for each rank and
// sender.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gxp {

// Threads: one at a time. Cost: O(senders of which something lies at the rank); no allocation but
// for growth.
class EarlyArrivals {
 public:
  struct Item {
    double time = 0;
    uint64_t bytes = 0;
    uint32_t segments = 0;
  };

  explicit EarlyArrivals(int ranks) : queues_(size_t(ranks)) {}
  void put(int rank, int from, const Item& item);
  // The first of what has arrived at `rank` from `from`.
  std::optional<Item> take(int rank, int from);

 private:
  struct Node {
    Item item;
    uint32_t next = 0;
  };
  struct Queue {
    int from;
    uint32_t first;
    uint32_t last;
  };

  std::vector<std::vector<Queue>> queues_;  // by rank; none is empty
  std::vector<Node> nodes_;
  std::vector<uint32_t> free_nodes_;
};

}  // namespace gxp

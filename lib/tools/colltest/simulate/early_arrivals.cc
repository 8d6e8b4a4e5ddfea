#include "lib/tools/colltest/simulate/early_arrivals.h"

#include <algorithm>

namespace gxp {

void EarlyArrivals::put(int rank, int from, const Item& item) {
  if (free_nodes_.empty()) {
    free_nodes_.push_back(uint32_t(nodes_.size()));
    nodes_.emplace_back();
  }
  const uint32_t node = free_nodes_.back();
  free_nodes_.pop_back();
  nodes_[node].item = item;
  std::vector<Queue>& queues = queues_[size_t(rank)];
  const auto queue = std::ranges::find(queues, from, &Queue::from);
  if (queue == queues.end()) {
    queues.push_back({from, node, node});
  } else {
    nodes_[queue->last].next = node;
    queue->last = node;
  }
}

std::optional<EarlyArrivals::Item> EarlyArrivals::take(int rank, int from) {
  std::vector<Queue>& queues = queues_[size_t(rank)];
  const auto queue = std::ranges::find(queues, from, &Queue::from);
  if (queue == queues.end()) return std::nullopt;
  const uint32_t node = queue->first;
  if (node == queue->last) {
    queues.erase(queue);
  } else {
    queue->first = nodes_[node].next;
  }
  free_nodes_.push_back(node);
  return nodes_[node].item;
}

}  // namespace gxp

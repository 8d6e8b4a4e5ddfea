#include "lib/tools/topology/rings/even_rings.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "lib/tools/topology/rings/ring_packing.h"

namespace gxp {
namespace {

// The free bandwidth of the links, in rings.
class Room {
 public:
  Room(const HostRoutes& routes, double gb_per_s) {
    for (const HostRoutes::Link& link : routes.links()) {
      left_.push_back(link.gb_per_s / gb_per_s * (1 + 1e-9));
    }
  }
  // Takes one ring's share of all these links, or of none.
  bool take(std::span<const uint32_t> links) {
    for (size_t i = 0; i < links.size(); ++i) {
      left_[links[i]] -= 1;
      if (left_[links[i]] >= 0) continue;
      give_back(links.first(i + 1));
      return false;
    }
    return true;
  }
  void give_back(std::span<const uint32_t> links) {
    for (const uint32_t link : links) left_[link] += 1;
  }
  [[nodiscard]] bool has(std::span<const uint32_t> links) const {
    return std::ranges::all_of(links, [&](uint32_t link) { return left_[link] >= 1; });
  }

 private:
  std::vector<double> left_;
};

// Each ring the best by itself on what the others leave.
std::optional<std::vector<Ring>> take_one_by_one(const HostRoutes& routes,
                                                 const std::vector<int>& starts, int count,
                                                 double gb_per_s, SearchBudget& budget) {
  Room room(routes, gb_per_s);
  std::vector<Ring> rings;
  while (int(rings.size()) < count) {
    const int start = starts[rings.size() % starts.size()];
    RingCosts costs = costs_of_routes(routes, std::vector<double>(routes.links().size(), 0));
    for (int from = 0; from < routes.places(); ++from) {
      for (int to = 0; to < routes.places(); ++to) {
        if (!room.has(routes.route(from, to).links)) {
          costs.between(from, to).price = RingCost::kImpossible;
        }
      }
    }
    PricedRing found = find_cheapest_ring(costs, {&start, 1});
    if (--budget.rings < 0 || !found.cost.is_possible()) return {};
    Ring ring = make_ring(routes, start, std::move(found.gpus));
    if (!room.take(links_of_ring(routes, ring))) return {};
    rings.push_back(std::move(ring));
  }
  return rings;
}

// Zigzags through the numbers, 0 1 -1 2 -2 ..., begun at each GPU in turn: with an even number of
// GPUs that are all joined, they take each of the links once (Williams, Aust. J. Sci. Res. A 2,
// 1949). Closed, or through a NIC, each as it can.
std::optional<std::vector<Ring>> take_zigzags(const HostRoutes& routes,
                                              const std::vector<int>& starts, int count,
                                              double gb_per_s) {
  Room room(routes, gb_per_s);
  std::vector<Ring> rings;
  std::vector<int> left = starts;
  for (int turn = 0; turn < count; ++turn) {
    std::vector<int> gpus(size_t(routes.gpus()));
    for (int i = 0; i < routes.gpus(); ++i) {
      const int step = i % 2 == 0 ? routes.gpus() - i / 2 : i / 2 + 1;
      gpus[size_t(i)] = (turn + step) % routes.gpus();
    }
    if (starts[0] == 0) std::rotate(gpus.begin(), std::ranges::find(gpus, 0), gpus.end());
    if (left.empty()) left = starts;
    const auto fits = std::ranges::find_if(left, [&](int start) {
      const Ring ring = make_ring(routes, start, gpus);
      return has_routes(routes, ring) && room.take(links_of_ring(routes, ring));
    });
    if (fits == left.end()) return {};
    rings.push_back(make_ring(routes, *fits, std::move(gpus)));
    left.erase(fits);
  }
  return rings;
}

// Depth first over the hops of the first ring, then of the second ...
class RingSearch {
 public:
  // In pairs: after each ring comes the same the other way round, which halves the depth and suits
  // links that are as wide both ways.
  RingSearch(const HostRoutes& routes, const std::vector<int>& starts, int count, double gb_per_s,
             bool in_pairs)
      : routes_(routes),
        starts_(starts),
        count_(size_t(count)),
        in_pairs_(in_pairs),
        room_(routes, gb_per_s),
        visited_(size_t(routes.gpus()), false) {
    for (int from = 0; from < routes.places(); ++from) sort_next_of(from);
  }

  std::optional<std::vector<Ring>> find(int64_t& budget) {
    budget_ = &budget;
    if (!find_ring()) return {};
    return rings_;
  }

 private:
  void sort_next_of(int from) {
    std::vector<int> gpus(size_t(routes_.gpus()));
    std::iota(gpus.begin(), gpus.end(), 0);
    std::erase_if(gpus, [&](int to) { return !routes_.route(from, to).exists; });
    std::ranges::stable_sort(gpus, {}, [&](int to) {
      const HostRoute& route = routes_.route(from, to);
      return std::pair(route.type, route.links.size());
    });
    next_.push_back(std::move(gpus));
  }

  bool find_ring() {
    if (rings_.size() == count_) return true;
    for (size_t i = 0; i < starts_.size(); ++i) {
      const int start = starts_[(rings_.size() + i) % starts_.size()];
      std::vector<int> outer = std::exchange(order_, {});
      std::vector<bool> outer_visited =
          std::exchange(visited_, std::vector<bool>(visited_.size(), false));
      if (start == 0) visit(0);
      const bool found = find_hop(start, start);
      order_ = std::move(outer);
      visited_ = std::move(outer_visited);
      if (found) return true;
    }
    return false;
  }
  bool find_hop(int start, int here) {
    if (--*budget_ < 0) return false;
    if (order_.size() == visited_.size()) return close(start, here);
    for (const int gpu : next_[size_t(here)]) {
      if (visited_[size_t(gpu)]) continue;
      const std::vector<uint32_t>& links = routes_.route(here, gpu).links;
      if (!room_.take(links)) continue;
      visit(gpu);
      if (find_hop(start, gpu)) return true;
      visited_[size_t(gpu)] = false;
      order_.pop_back();
      room_.give_back(links);
    }
    return false;
  }
  void visit(int gpu) {
    visited_[size_t(gpu)] = true;
    order_.push_back(gpu);
  }
  bool close(int start, int here) {
    const HostRoute& back = routes_.route(here, start);
    if (!back.exists || !room_.take(back.links)) return false;
    rings_.push_back(make_ring(routes_, start, order_));
    if (in_pairs_ ? close_pair() : find_ring()) return true;
    rings_.pop_back();
    room_.give_back(back.links);
    return false;
  }
  bool close_pair() {
    const Ring back = reversed(rings_.back());
    if (!has_routes(routes_, back)) return false;
    const std::vector<uint32_t> links = links_of_ring(routes_, back);
    if (!room_.take(links)) return false;
    rings_.push_back(back);
    if (find_ring()) return true;
    rings_.pop_back();
    room_.give_back(links);
    return false;
  }

  const HostRoutes& routes_;
  const std::vector<int>& starts_;
  size_t count_;
  bool in_pairs_;
  Room room_;
  std::vector<std::vector<int>> next_;  // GPUs that a place reaches, the best first
  std::vector<bool> visited_;
  std::vector<int> order_;
  std::vector<Ring> rings_;
  int64_t* budget_ = nullptr;
};

}  // namespace

std::optional<std::vector<Ring>> find_even_rings(const HostRoutes& routes,
                                                 const std::vector<int>& starts, int count,
                                                 double gb_per_s, SearchBudget& budget) {
  if (budget.rings > 0) {
    if (auto rings = take_one_by_one(routes, starts, count, gb_per_s, budget)) return rings;
  }
  if (auto rings = take_zigzags(routes, starts, count, gb_per_s)) return rings;
  if (routes.gpus() > kMaxExactGpus) return {};
  if (count % 2 == 0) {
    int64_t half = budget.hops / 2;
    budget.hops -= half;
    auto rings = RingSearch(routes, starts, count, gb_per_s, true).find(half);
    if (rings) return rings;
    budget.hops += std::max<int64_t>(0, half);
  }
  return RingSearch(routes, starts, count, gb_per_s, false).find(budget.hops);
}

}  // namespace gxp

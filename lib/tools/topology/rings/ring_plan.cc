#include "lib/tools/topology/rings/ring_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/error.h"
#include "lib/tools/topology/rings/ring_packing.h"

namespace gxp {
namespace {

// Rings that all carry the same, as NCCL's channels do.

// The limits of a search; counted down, and below 0 if they ended the search.
struct SearchBudget {
  int64_t rings = 0;  // found one by one (cheapest_ring.h)
  int64_t hops = 0;   // taken in a search through all rings
};

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

// `count` rings of `gb_per_s` each, that the links carry all at once; those that start at a NIC use
// the NICs evenly. If they can be found one by one, the first ring has the nearest types of hops,
// then the fewest links, then the lowest GPU numbers; each further one likewise, on the bandwidth
// that is left. Nothing if there are none, or the budget was not enough to find them.
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

// Searches for equal rings that carry the most: 8 GPUs take up to 50 ms.
constexpr int64_t kRings = 256;
constexpr int64_t kHops = 1 << 18;
constexpr int64_t kHopsForNumber = 1 << 15;   // of these, for each number of rings
constexpr int64_t kHopsForOneRing = 1 << 20;  // for the best single ring: all there are of 9 GPUs

struct Planner {
  const HostRoutes& routes;
  std::vector<int> starts;
  RingPacking packing;

  // At most so many rings of that rate fit: a ring costs 1 or more, and a link carries whole rings.
  [[nodiscard]] double most_rings(double gb_per_s) const {
    double most = 0;
    for (size_t link = 0; link < packing.prices.size(); ++link) {
      const double fit = std::floor(routes.links()[link].gb_per_s / gb_per_s * (1 + 1e-9));
      most += packing.prices[link] * fit;
    }
    return most * (1 + 1e-9);
  }
  [[nodiscard]] std::optional<RingPlan> even_plan(int count, double gb_per_s,
                                                  SearchBudget& budget) const {
    if (most_rings(gb_per_s) < count) return {};
    auto rings = find_even_rings(routes, starts, count, gb_per_s, budget);
    if (!rings) return {};
    RingPlan plan{.gb_per_s = count * gb_per_s};
    for (Ring& ring : *rings) plan.channels.push_back({std::move(ring), gb_per_s});
    return plan;
  }

  // Equal rings that carry the most that any do, as few as can be.
  [[nodiscard]] std::optional<RingPlan> best_even_plan(int most_channels) const {
    SearchBudget left{kRings, kHops};
    for (int count = 1; count <= most_channels && left.hops > 0; ++count) {
      SearchBudget budget{left.rings, std::min(left.hops, kHopsForNumber)};
      left.hops -= budget.hops;
      auto plan = even_plan(count, packing.gb_per_s / count, budget);
      if (plan) return plan;
      left.rings = budget.rings;
      left.hops += std::max<int64_t>(0, budget.hops);
    }
    return {};
  }

  // The fastest single ring. Its rate is what some link carries, divided by the ring's hops over
  // it; a higher rate fails wherever a lower one does.
  [[nodiscard]] RingPlan best_single_ring() const {
    std::vector<double> rates;
    for (const HostRoutes::Link& link : routes.links()) {
      for (int hops = 1; hops <= routes.gpus() + 1; ++hops) {
        const double rate = link.gb_per_s / hops;
        if (rate <= packing.bound_gb_per_s * (1 + 1e-9)) rates.push_back(rate);
      }
    }
    std::ranges::sort(rates, std::greater<>());
    const auto same = [](double a, double b) { return a <= b * (1 + 1e-12); };
    rates.erase(std::unique(rates.begin(), rates.end(), same), rates.end());
    RingPlan best;
    for (size_t low = 0, high = rates.size(); low < high;) {
      const size_t middle = (low + high) / 2;
      SearchBudget budget{kRings, kHopsForOneRing};
      auto plan = even_plan(1, rates[middle], budget);
      if (plan) best = std::move(*plan);
      (plan ? high : low) = plan ? middle : middle + 1;
    }
    return best;
  }

  [[nodiscard]] RingPlan uneven_plan(int most_channels) const {
    RingPlan plan{.channels = packing.channels};
    if (plan.channels.size() > size_t(most_channels)) {
      plan.channels = pack_few(routes, std::move(plan.channels), size_t(most_channels));
    }
    for (const RingChannel& channel : plan.channels) plan.gb_per_s += channel.gb_per_s;
    std::ranges::sort(plan.channels, [](const RingChannel& a, const RingChannel& b) {
      return std::pair(a.ring.nic, a.ring.gpus) < std::pair(b.ring.nic, b.ring.gpus);
    });
    return plan;
  }

  [[nodiscard]] RingPlan plan(int most_channels) const {
    if (auto even = best_even_plan(most_channels)) return *std::move(even);
    if (most_channels == 1) return best_single_ring();
    return uneven_plan(most_channels);
  }
};

}  // namespace

RingPlan plan_rings(const HostRoutes& routes, const RingRequest& request) {
  if (request.most_channels < 1) {
    fail(ErrorKind::kConfig, "plan rings: {} channels; at least one is needed",
         request.most_channels);
  }
  if (request.through_nics && routes.nics() == 0) {
    fail(ErrorKind::kConfig, "plan rings over several hosts: the host has no NIC");
  }
  if (routes.gpus() == 1 && !request.through_nics) return {.channels = {{{-1, {0}}, 0}}};
  Planner planner{routes, starts_of_rings(routes, request.through_nics), {}};
  planner.packing = pack_rings(routes, planner.starts);
  if (planner.packing.channels.empty()) return {};
  RingPlan plan = planner.plan(request.most_channels);
  plan.bound_gb_per_s = planner.packing.bound_gb_per_s;
  for (size_t link = 0; link < planner.packing.prices.size(); ++link) {
    const double share = planner.packing.prices[link] * routes.links()[link].gb_per_s;
    if (share > 1e-6 * plan.bound_gb_per_s) plan.limits.push_back(uint32_t(link));
  }
  return plan;
}

}  // namespace gxp

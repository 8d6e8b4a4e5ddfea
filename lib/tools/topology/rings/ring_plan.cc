#include "lib/tools/topology/rings/ring_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/tools/topology/rings/even_rings.h"
#include "lib/tools/topology/rings/ring_packing.h"

namespace gxp {
namespace {

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

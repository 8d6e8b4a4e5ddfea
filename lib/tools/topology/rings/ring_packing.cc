#include "lib/tools/topology/rings/ring_packing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "lib/tools/topology/rings/packing_program.h"

namespace gxp {
namespace {

constexpr double kUnit = double(int64_t{1} << 36);  // a price of 1, in RingCost
constexpr double kWorthIt = 1 - 1e-8;
constexpr int kMaxRounds = 1000;  // of exact search; 8 GPUs need some 50
constexpr int kMaxInexactRounds = 64;

// Few hops of the worst type, then of the next, ...; then few links. 17 and 2^11: of 16 GPUs' hops
// and their links no number is too small for the next.
int64_t tie_of(const HostRoute& route) {
  int64_t types = 1;
  for (int i = 0; i < int(route.type); ++i) types *= 17;
  return (types << 11) + int64_t(route.links.size());
}

std::vector<double> capacities_of(const HostRoutes& routes) {
  std::vector<double> capacities;
  for (const HostRoutes::Link& link : routes.links()) capacities.push_back(link.gb_per_s);
  return capacities;
}

class RingPacker {
 public:
  RingPacker(const HostRoutes& routes, const std::vector<int>& starts)
      : routes_(routes), starts_(starts), program_(capacities_of(routes)) {
    best_.bound_gb_per_s = std::numeric_limits<double>::infinity();
  }

  [[nodiscard]] RingPacking pack() && {
    const int rounds = routes_.gpus() <= kMaxExactGpus ? kMaxRounds : kMaxInexactRounds;
    for (int round = 0; round < rounds; ++round) {
      if (!add_ring()) break;
    }
    if (rings_.empty()) return {};
    const std::vector<double> amounts = program_.amounts();
    for (size_t i = 0; i < rings_.size(); ++i) {
      if (amounts[i] == 0) continue;
      best_.channels.push_back({rings_[i], amounts[i]});
      best_.gb_per_s += amounts[i];
    }
    best_.bound_gb_per_s = std::max(best_.bound_gb_per_s, best_.gb_per_s);  // rounding
    return std::move(best_);
  }

 private:
  // Adds the ring with the largest gain over the price of its links; false if there is none.
  bool add_ring() {
    std::vector<double> prices = program_.prices();
    for (double& price : prices) price = std::max(0.0, price);
    PricedRing found = find_cheapest_ring(costs_of_routes(routes_, prices), starts_);
    note_bound(std::move(prices), double(found.least_price) / kUnit);
    if (double(found.cost.price) >= kWorthIt * kUnit) return false;
    Ring ring = make_ring(routes_, found.start, std::move(found.gpus));
    if (std::ranges::find(rings_, ring) != rings_.end()) return false;
    program_.add_route(links_of_ring(routes_, ring));
    rings_.push_back(std::move(ring));
    return true;
  }
  // Divided by what the cheapest ring costs, prices are such that none costs less than 1.
  void note_bound(std::vector<double> prices, double least) {
    if (!(least > 0)) return;
    double bound = 0;
    for (size_t link = 0; link < prices.size(); ++link) {
      prices[link] /= least;
      bound += prices[link] * routes_.links()[link].gb_per_s;
    }
    if (bound >= best_.bound_gb_per_s) return;
    best_.bound_gb_per_s = bound;
    best_.prices = std::move(prices);
  }

  const HostRoutes& routes_;
  const std::vector<int>& starts_;
  PackingProgram program_;
  std::vector<Ring> rings_;  // the routes of the program
  RingPacking best_;
};

}  // namespace

RingCosts costs_of_routes(const HostRoutes& routes, const std::vector<double>& prices) {
  constexpr double kMost = double(RingCost::kImpossible) / 4;
  RingCosts costs(routes.gpus(), routes.places());
  for (int from = 0; from < routes.places(); ++from) {
    for (int to = 0; to < routes.places(); ++to) {
      const HostRoute& route = routes.route(from, to);
      if (!route.exists) continue;
      double price = 0;
      for (const uint32_t link : route.links) price += prices[link];
      costs.between(from, to) = {.price = std::llround(std::min(price * kUnit, kMost)),
                                 .tie = tie_of(route)};
    }
  }
  return costs;
}

std::vector<RingChannel> pack_few(const HostRoutes& routes, std::vector<RingChannel> channels,
                                  size_t most) {
  std::ranges::stable_sort(channels, std::ranges::greater(), &RingChannel::gb_per_s);
  channels.resize(std::min(channels.size(), most));
  PackingProgram program(capacities_of(routes));
  for (const RingChannel& channel : channels)
    program.add_route(links_of_ring(routes, channel.ring));
  const std::vector<double> amounts = program.amounts();
  for (size_t i = 0; i < channels.size(); ++i) channels[i].gb_per_s = amounts[i];
  std::erase_if(channels, [](const RingChannel& channel) { return channel.gb_per_s == 0; });
  return channels;
}

RingPacking pack_rings(const HostRoutes& routes, const std::vector<int>& starts) {
  return RingPacker(routes, starts).pack();
}

}  // namespace gxp

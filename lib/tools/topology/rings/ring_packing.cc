#include "lib/tools/topology/rings/ring_packing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

// The linear program behind plans: the largest total amount of several routes that share
// capacities, and the price of a unit of each capacity.
//
//   most sum of x[w], where sum over w of uses[w][c] x[w] <= capacity[c] for each c, and x >= 0
//
// Routes are added one by one (column generation: Dantzig & Wolfe, Operations Research 8(1), 1960);
// the primal simplex method with an explicit inverse goes on from where it stood. At the optimum,
// the prices prove it: each route costs at least 1, and all capacities together cost as much as the
// sum; a further route can raise the sum only if it costs less than 1. Ties, which hosts are full
// of, are broken by a relative change of capacities of less than 1e-6, which the results do not
// contain.
//   Cost   m^2 a step for m capacities.
class PackingProgram {
 public:
  // Capacities are > 0.
  explicit PackingProgram(std::vector<double> capacities);

  // The capacities that one unit of the route uses, some perhaps several times; at least one.
  void add_route(std::span<const uint32_t> uses);
  [[nodiscard]] size_t routes() const { return routes_.size(); }
  // The price of each capacity, at least 0.
  [[nodiscard]] const std::vector<double>& prices() const { return prices_; }
  // The amount of each route; together they keep within the capacities.
  [[nodiscard]] std::vector<double> amounts() const;

 private:
  [[nodiscard]] double price_of(size_t route) const;
  [[nodiscard]] bool improve();
  void enter(int64_t column);
  void find_prices();
  [[nodiscard]] double inverse(size_t row, size_t column) const {
    return inverse_[row * capacities_.size() + column];
  }
  [[nodiscard]] std::vector<double> direction_of(int64_t column) const;

  struct Use {
    uint32_t capacity;
    double times;
  };
  std::vector<double> capacities_;
  std::vector<std::vector<Use>> routes_;
  std::vector<int64_t> basis_;   // by row: a route, or ~c for the slack of capacity c
  std::vector<double> inverse_;  // of the basis
  std::vector<double> values_;   // of the basis, with the changed capacities
  std::vector<double> prices_;
};

constexpr double kSmall = 1e-9;
constexpr int kMaxStepsPerRow = 50;  // a bound for what rounding could repeat

// Between 0 and 1, different for each.
double fraction_of(size_t index) {
  const double golden = double(index + 1) * 0.6180339887498949;
  return golden - double(int64_t(golden));
}

PackingProgram::PackingProgram(std::vector<double> capacities)
    : capacities_(std::move(capacities)), prices_(capacities_.size(), 0) {
  const size_t rows = capacities_.size();
  inverse_.resize(rows * rows, 0);
  for (size_t row = 0; row < rows; ++row) {
    GXP_ASSERT(capacities_[row] > 0);
    basis_.push_back(~int64_t(row));
    inverse_[row * rows + row] = 1;
    values_.push_back(capacities_[row] * (1 + 1e-7 * fraction_of(row)));
  }
}

void PackingProgram::add_route(std::span<const uint32_t> uses) {
  GXP_ASSERT(!uses.empty());
  std::map<uint32_t, double> times;
  for (const uint32_t capacity : uses) times[capacity] += 1;
  routes_.emplace_back();
  for (const auto& [capacity, count] : times) routes_.back().push_back({capacity, count});
  for (size_t step = 0; step < kMaxStepsPerRow * capacities_.size(); ++step) {
    if (!improve()) return;
  }
}

double PackingProgram::price_of(size_t route) const {
  double price = 0;
  for (const Use& use : routes_[route]) price += prices_[use.capacity] * use.times;
  return price;
}

// Takes in what raises the sum most by the unit.
bool PackingProgram::improve() {
  double most = kSmall;
  std::optional<int64_t> best;
  for (size_t route = 0; route < routes_.size(); ++route) {
    if (const double gain = 1 - price_of(route); gain > most) {
      most = gain;
      best = int64_t(route);
    }
  }
  for (size_t capacity = 0; capacity < capacities_.size(); ++capacity) {
    if (const double gain = -prices_[capacity]; gain > most) {
      most = gain;
      best = ~int64_t(capacity);
    }
  }
  if (best) enter(*best);
  return best.has_value();
}

std::vector<double> PackingProgram::direction_of(int64_t column) const {
  std::vector<double> direction(capacities_.size());
  for (size_t row = 0; row < capacities_.size(); ++row) {
    if (column < 0) {
      direction[row] = inverse(row, size_t(~column));
      continue;
    }
    for (const Use& use : routes_[size_t(column)]) {
      direction[row] += inverse(row, use.capacity) * use.times;
    }
  }
  return direction;
}

void PackingProgram::enter(int64_t column) {
  const size_t rows = capacities_.size();
  const std::vector<double> direction = direction_of(column);
  size_t leaving = rows;
  double step = std::numeric_limits<double>::infinity();
  for (size_t row = 0; row < rows; ++row) {
    if (direction[row] <= kSmall) continue;
    const double room = values_[row] / direction[row];
    if (room < step) {
      step = room;
      leaving = row;
    }
  }
  GXP_ASSERT(leaving < rows);  // every route uses a capacity, so the sum is bounded
  for (size_t i = 0; i < rows; ++i) inverse_[leaving * rows + i] /= direction[leaving];
  for (size_t row = 0; row < rows; ++row) {
    if (row == leaving || direction[row] == 0) continue;
    for (size_t i = 0; i < rows; ++i) {
      inverse_[row * rows + i] -= direction[row] * inverse_[leaving * rows + i];
    }
    values_[row] = std::max(0.0, values_[row] - step * direction[row]);
  }
  values_[leaving] = step;
  basis_[leaving] = column;
  find_prices();
}

void PackingProgram::find_prices() {
  const size_t rows = capacities_.size();
  std::ranges::fill(prices_, 0);
  for (size_t row = 0; row < rows; ++row) {
    if (basis_[row] < 0) continue;
    for (size_t i = 0; i < rows; ++i) prices_[i] += inverse_[row * rows + i];
  }
}

// The basis with the capacities as they are; what rounding has left above them is taken off.
std::vector<double> PackingProgram::amounts() const {
  const size_t rows = capacities_.size();
  double largest = 0;
  std::vector<double> amounts(routes_.size(), 0);
  for (size_t row = 0; row < rows; ++row) {
    if (basis_[row] < 0) continue;
    double amount = 0;
    for (size_t i = 0; i < rows; ++i) amount += inverse(row, i) * capacities_[i];
    amounts[size_t(basis_[row])] = amount;
    largest = std::max(largest, amount);
  }
  std::vector<double> used(rows, 0);
  for (size_t route = 0; route < routes_.size(); ++route) {
    if (amounts[route] < 1e-6 * largest) amounts[route] = 0;
    for (const Use& use : routes_[route]) used[use.capacity] += amounts[route] * use.times;
  }
  double over = 1;
  for (size_t i = 0; i < rows; ++i) over = std::max(over, used[i] / capacities_[i]);
  for (double& amount : amounts) amount /= over;
  return amounts;
}

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

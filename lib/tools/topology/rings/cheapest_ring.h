// The cheapest ring through all GPUs of a host, where going from one to the next has a cost.
//
// Up to kMaxExactGpus exactly, by dynamic programming over subsets (Held & Karp, J. SIAM 10(1),
// 1962): n^2 2^n steps, 16 GPUs 10 ms. Above, the nearest neighbour and then moves of parts, with
// a lower bound.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gxp {

inline constexpr int kMaxExactGpus = 16;

// The price of a hop; rings are compared by the sums of their hops' prices.
struct RingCost {
  static constexpr int64_t kImpossible = int64_t{1} << 50;

  int64_t price = 0;
  int64_t tie = 0;  // decides between equal prices

  friend auto operator<=>(const RingCost&, const RingCost&) = default;
  friend RingCost operator+(const RingCost& a, const RingCost& b) {
    return {a.price + b.price, a.tie + b.tie};
  }
  [[nodiscard]] bool is_possible() const { return price < kImpossible; }
};

struct RingCosts {
  RingCosts(int gpus, int places);
  [[nodiscard]] RingCost& between(int from, int to) {
    return of_pairs[static_cast<size_t>(from) * static_cast<size_t>(places) +
                    static_cast<size_t>(to)];
  }
  [[nodiscard]] const RingCost& between(int from, int to) const {
    return of_pairs[static_cast<size_t>(from) * static_cast<size_t>(places) +
                    static_cast<size_t>(to)];
  }

  int gpus;
  int places;                      // GPUs are the first
  std::vector<RingCost> of_pairs;  // impossible at first
};

struct PricedRing {
  int start = 0;            // one of `starts`
  std::vector<int> gpus{};  // the GPUs in order, after the start, or with it if the start is GPU 0
  RingCost cost{};          // not possible: there is no ring, or none was found
  int64_t least_price = 0;  // no ring costs less
};

// The cheapest ring through all GPUs and one of `starts`: places that are no GPUs, or GPU 0 alone.
// Among rings of equal price, the one with the lowest numbers after GPU 0.
PricedRing find_cheapest_ring(const RingCosts& costs, std::span<const int> starts);

}  // namespace gxp

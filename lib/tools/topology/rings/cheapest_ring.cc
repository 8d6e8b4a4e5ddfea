#include "lib/tools/topology/rings/cheapest_ring.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr RingCost kNoWay{.price = RingCost::kImpossible};

// Rings as seen from GPU 0. They go through a NIC, if they must, instead of one direct hop.
class SubsetTable {
 public:
  SubsetTable(const RingCosts& costs, std::span<const int> starts)
      : costs_(costs), starts_(starts), others_(size_t(costs.gpus) - 1) {
    if (needs_nic()) find_nics();
    cheapest_.resize(layers() * others_ << others_);
    for (uint32_t set = 0; set < uint32_t{1} << others_; ++set) {
      for (size_t i = 0; i < others_; ++i) {
        if (((set >> i) & 1) != 0) continue;
        at(set, i, false) = cheapest_from(int(i) + 1, set, false);
        if (needs_nic()) at(set, i, true) = cheapest_from(int(i) + 1, set, true);
      }
    }
  }

  [[nodiscard]] PricedRing ring() const {
    auto set = uint32_t((uint64_t{1} << others_) - 1);
    PricedRing ring{.start = 0, .gpus = {0}, .cost = cheapest_from(0, set, needs_nic())};
    ring.least_price = ring.cost.price;
    if (!ring.cost.is_possible()) return ring;
    RingCost left = ring.cost;
    bool nic_ahead = needs_nic();
    size_t behind_nic = 0;
    for (int here = 0; nic_ahead || set != 0;) {
      const Hop hop = hop_of(here, set, nic_ahead, left);
      if (hop.by_nic) {
        ring.start = nic_between(here, hop.to);
        behind_nic = ring.gpus.size();
        nic_ahead = false;
      }
      if (hop.to == 0) break;
      set &= ~bit_of(hop.to);
      left = at(set, size_t(hop.to) - 1, nic_ahead);
      here = hop.to;
      ring.gpus.push_back(here);
    }
    const size_t first = behind_nic % ring.gpus.size();
    std::rotate(ring.gpus.begin(), ring.gpus.begin() + std::ptrdiff_t(first), ring.gpus.end());
    return ring;
  }

 private:
  struct Hop {
    int to;
    bool by_nic;
  };

  [[nodiscard]] bool needs_nic() const { return starts_[0] != 0; }
  [[nodiscard]] size_t layers() const { return needs_nic() ? 2 : 1; }
  static uint32_t bit_of(int gpu) { return uint32_t{1} << (gpu - 1); }
  [[nodiscard]] size_t pair(int from, int to) const {
    return size_t(from) * size_t(costs_.gpus) + size_t(to);
  }
  [[nodiscard]] int nic_between(int from, int to) const { return nics_[pair(from, to)]; }

  // The cheapest between any two GPUs, and a GPU and itself.
  void find_nics() {
    for (int from = 0; from < costs_.gpus; ++from) {
      for (int to = 0; to < costs_.gpus; ++to) {
        const int nic = *std::ranges::min_element(starts_, {}, [&](int start) {
          return costs_.between(from, start) + costs_.between(start, to);
        });
        nics_.push_back(nic);
        by_nic_.push_back(costs_.between(from, nic) + costs_.between(nic, to));
      }
    }
  }

  // The cheapest way from GPU i + 1 through the set, which lacks that GPU, and back to GPU 0.
  [[nodiscard]] RingCost& at(uint32_t set, size_t i, bool nic_ahead) {
    return cheapest_[(set * others_ + i) * layers() + (nic_ahead ? 1 : 0)];
  }
  [[nodiscard]] const RingCost& at(uint32_t set, size_t i, bool nic_ahead) const {
    return cheapest_[(set * others_ + i) * layers() + (nic_ahead ? 1 : 0)];
  }
  [[nodiscard]] RingCost cheapest_from(int gpu, uint32_t set, bool nic_ahead) const {
    if (set == 0) return last_hop(gpu, nic_ahead);
    RingCost least = kNoWay;
    for (uint32_t rest = set; rest != 0; rest &= rest - 1) {
      const auto i = size_t(std::countr_zero(rest));
      const uint32_t behind = set & ~(uint32_t{1} << i);
      const int next = int(i) + 1;
      least = std::min(least, costs_.between(gpu, next) + at(behind, i, nic_ahead));
      if (nic_ahead) least = std::min(least, by_nic_[pair(gpu, next)] + at(behind, i, false));
    }
    return least;
  }
  [[nodiscard]] RingCost last_hop(int gpu, bool nic_ahead) const {
    if (nic_ahead) return by_nic_[pair(gpu, 0)];
    return gpu == 0 ? RingCost{} : costs_.between(gpu, 0);
  }
  // To the lowest number that attains the cost.
  [[nodiscard]] Hop hop_of(int gpu, uint32_t set, bool nic_ahead, const RingCost& cost) const {
    for (uint32_t rest = set; rest != 0; rest &= rest - 1) {
      const auto i = size_t(std::countr_zero(rest));
      const uint32_t behind = set & ~(uint32_t{1} << i);
      const int next = int(i) + 1;
      if (costs_.between(gpu, next) + at(behind, i, nic_ahead) == cost) return {next, false};
      if (nic_ahead && by_nic_[pair(gpu, next)] + at(behind, i, false) == cost) return {next, true};
    }
    return {0, nic_ahead};
  }

  const RingCosts& costs_;
  std::span<const int> starts_;
  size_t others_;  // GPUs but GPU 0
  std::vector<int> nics_;
  std::vector<RingCost> by_nic_;
  std::vector<RingCost> cheapest_;
};

// The GPUs behind `start`.
std::vector<int> gpus_behind(const RingCosts& costs, int start) {
  std::vector<int> gpus(size_t(costs.gpus - (start == 0 ? 1 : 0)));
  std::iota(gpus.begin(), gpus.end(), start == 0 ? 1 : 0);
  return gpus;
}

// Order of the GPUs behind the start, made better by moving runs of them elsewhere.
class RingByMoves {
 public:
  RingByMoves(const RingCosts& costs, int start) : costs_(costs), start_(start) {}

  [[nodiscard]] PricedRing ring() {
    visit_nearest();
    while (move_a_run()) {
    }
    PricedRing ring{
        .start = start_, .gpus = order_, .cost = cost_of(order_), .least_price = least_price()};
    if (start_ == 0) ring.gpus.insert(ring.gpus.begin(), 0);
    if (!ring.cost.is_possible()) ring.gpus.clear();
    return ring;
  }

 private:
  void visit_nearest() {
    std::vector<int> left = gpus_behind(costs_, start_);
    for (int here = start_; !left.empty();) {
      const auto nearest = std::ranges::min_element(
          left, {}, [&](int gpu) { return costs_.between(here, gpu); });  // the first of equals
      here = *nearest;
      order_.push_back(here);
      left.erase(nearest);
    }
  }
  [[nodiscard]] RingCost cost_of(const std::vector<int>& order) const {
    RingCost sum;
    int here = start_;
    for (const int gpu : order) {
      sum = sum + costs_.between(here, gpu);
      here = gpu;
    }
    return sum + costs_.between(here, start_);
  }
  // Takes the first move of up to three neighbours that makes the ring cheaper.
  bool move_a_run() {
    const auto size = std::ptrdiff_t(order_.size());
    for (std::ptrdiff_t length = 1; length <= std::min<std::ptrdiff_t>(3, size - 1); ++length) {
      for (std::ptrdiff_t run = 0; run + length <= size; ++run) {
        for (std::ptrdiff_t to = -1; to < size; ++to) {
          if (run - 1 <= to && to < run + length) continue;
          if (!pays(run, length, to)) continue;
          const auto first = order_.begin() + run;
          if (to < run) {
            std::rotate(order_.begin() + to + 1, first, first + length);
          } else {
            std::rotate(first, first + length, order_.begin() + to + 1);
          }
          return true;
        }
      }
    }
    return false;
  }
  // Whether the ring is cheaper with the `length` GPUs from position `run` on behind position `to`.
  [[nodiscard]] bool pays(std::ptrdiff_t run, std::ptrdiff_t length, std::ptrdiff_t to) const {
    const int first = at(run);
    const int last = at(run + length - 1);
    const RingCost now = costs_.between(at(run - 1), first) +
                         costs_.between(last, at(run + length)) +
                         costs_.between(at(to), at(to + 1));
    const RingCost then = costs_.between(at(run - 1), at(run + length)) +
                          costs_.between(at(to), first) + costs_.between(last, at(to + 1));
    return then < now;
  }
  [[nodiscard]] int at(std::ptrdiff_t position) const {
    return 0 <= position && position < std::ptrdiff_t(order_.size()) ? order_[size_t(position)]
                                                                     : start_;
  }
  // Each GPU is left once, and entered once.
  [[nodiscard]] int64_t least_price() const {
    std::vector<int> places = gpus_behind(costs_, start_);
    places.push_back(start_);
    int64_t leaving = 0;
    int64_t entering = 0;
    for (const int here : places) {
      int64_t out = RingCost::kImpossible;
      int64_t in = RingCost::kImpossible;
      for (const int other : places) {
        if (other == here) continue;
        out = std::min(out, costs_.between(here, other).price);
        in = std::min(in, costs_.between(other, here).price);
      }
      leaving += out;
      entering += in;
    }
    return std::max(leaving, entering);
  }

  const RingCosts& costs_;
  int start_;
  std::vector<int> order_;
};

}  // namespace

RingCosts::RingCosts(int gpus, int places)
    : gpus(gpus), places(places), of_pairs(size_t(places) * size_t(places), kNoWay) {}

PricedRing find_cheapest_ring(const RingCosts& costs, std::span<const int> starts) {
  GXP_ASSERT(!starts.empty());
  if (costs.gpus <= kMaxExactGpus) return SubsetTable(costs, starts).ring();
  PricedRing best{.cost = kNoWay, .least_price = RingCost::kImpossible};
  for (const int start : starts) {
    PricedRing ring = RingByMoves(costs, start).ring();
    const int64_t least = std::min(best.least_price, ring.least_price);
    if (ring.cost < best.cost) best = std::move(ring);
    best.least_price = least;
  }
  return best;
}

}  // namespace gxp

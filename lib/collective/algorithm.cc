#include "lib/collective/algorithm.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/collective/binomial.h"
#include "lib/collective/dissemination.h"
#include "lib/collective/halving_doubling.h"
#include "lib/collective/ring.h"

namespace gxp {
namespace {

using enum Collective;

constexpr std::array kAlgorithms = {
    Algorithm{"halving-doubling", kAllReduce, true, halving_doubling_all_reduce,
              halving_doubling_all_reduce_rounds, halving_doubling_all_reduce_sent},
    Algorithm{"halving-doubling", kReduceScatter, true, halving_doubling_reduce_scatter,
              halving_doubling_half_rounds, halving_doubling_reduce_scatter_sent},
    Algorithm{"halving-doubling", kAllGather, true, halving_doubling_all_gather,
              halving_doubling_half_rounds, halving_doubling_all_gather_sent},
    Algorithm{"ring", kAllReduce, false, ring_all_reduce, ring_all_reduce_rounds,
              ring_all_reduce_sent},
    Algorithm{"ring", kReduceScatter, false, ring_reduce_scatter, ring_half_rounds,
              ring_reduce_scatter_sent},
    Algorithm{"ring", kAllGather, true, ring_all_gather, ring_half_rounds, ring_all_gather_sent},
    Algorithm{"binomial", kBroadcast, true, binomial_broadcast, binomial_rounds,
              binomial_broadcast_sent},
    Algorithm{"dissemination", kBarrier, true, dissemination_barrier, dissemination_rounds,
              dissemination_barrier_sent},
};

}  // namespace

std::string_view to_string(Collective collective) {
  constexpr std::array<std::string_view, 5> kNames = {"all-reduce", "reduce-scatter", "all-gather",
                                                      "broadcast", "barrier"};
  return kNames[static_cast<size_t>(collective)];
}

size_t Chunks::begin_of(int index) const {
  const auto i = static_cast<size_t>(index);
  const auto n = static_cast<size_t>(world_size_);
  return count_ / n * i + std::min(i, count_ % n);
}

Range Chunks::operator[](int index) const {
  const int i = (index % world_size_ + world_size_) % world_size_;
  return span(i, i + 1);
}

Range Chunks::span(int first, int last) const {
  GXP_ASSERT(0 <= first && first <= last && last <= world_size_);
  return {begin_of(first), begin_of(last) - begin_of(first)};
}

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(std::string_view name, Collective collective) {
  const auto* row = std::find_if(kAlgorithms.begin(), kAlgorithms.end(), [&](const Algorithm& a) {
    return a.name == name && a.collective == collective;
  });
  return row == kAlgorithms.end() ? nullptr : row;
}

}  // namespace gxp

#include "lib/collective/algorithm/algorithm.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/collective/algorithm/binomial.h"
#include "lib/collective/algorithm/bruck.h"
#include "lib/collective/algorithm/direct.h"
#include "lib/collective/algorithm/dissemination.h"
#include "lib/collective/algorithm/double_tree.h"
#include "lib/collective/algorithm/halving_doubling.h"
#include "lib/collective/algorithm/hierarchical.h"
#include "lib/collective/algorithm/recursive_doubling.h"
#include "lib/collective/algorithm/ring.h"
#include "lib/topo/rings/rank_plan.h"

namespace gxp {
namespace {

using enum Collective;

constexpr std::array kCollectives = {kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce,
                                     kGather,    kScatter,       kAllToAll,  kBarrier};

constexpr std::array kAlgorithms = {
    Algorithm{"halving-doubling", kAllReduce, true, halving_doubling_all_reduce,
              halving_doubling_all_reduce_rounds, halving_doubling_all_reduce_sent},
    Algorithm{"ring", kAllReduce, false, ring_all_reduce, ring_all_reduce_rounds,
              ring_all_reduce_sent},
    Algorithm{"direct", kAllReduce, true, direct_all_reduce, direct_all_reduce_rounds,
              direct_all_reduce_sent, direct_chunks_scratch},
    Algorithm{"recursive-doubling", kAllReduce, true, recursive_doubling_all_reduce,
              recursive_doubling_rounds, recursive_doubling_sent, recursive_doubling_scratch},
    Algorithm{"one-shot", kAllReduce, true, one_shot_all_reduce, direct_rounds, one_shot_sent,
              one_shot_scratch},
    Algorithm{"double-tree", kAllReduce, false, double_tree_all_reduce,
              double_tree_all_reduce_rounds, double_tree_all_reduce_sent},
    Algorithm{"hierarchical", kAllReduce, false, hierarchical_all_reduce,
              hierarchical_all_reduce_rounds, hierarchical_all_reduce_sent},

    Algorithm{"halving-doubling", kReduceScatter, true, halving_doubling_reduce_scatter,
              halving_doubling_reduce_scatter_rounds, halving_doubling_reduce_scatter_sent},
    Algorithm{"ring", kReduceScatter, false, ring_reduce_scatter, ring_half_rounds,
              ring_reduce_scatter_sent},
    Algorithm{"direct", kReduceScatter, true, direct_reduce_scatter, direct_rounds,
              direct_chunk_to_each_sent, direct_chunks_scratch},
    Algorithm{"hierarchical", kReduceScatter, false, hierarchical_reduce_scatter,
              hierarchical_courier_rounds, hierarchical_reduce_scatter_sent},

    Algorithm{"halving-doubling", kAllGather, true, halving_doubling_all_gather,
              halving_doubling_all_gather_rounds, halving_doubling_all_gather_sent},
    Algorithm{"ring", kAllGather, true, ring_all_gather, ring_half_rounds, ring_all_gather_sent},
    Algorithm{"direct", kAllGather, true, direct_all_gather, direct_rounds, direct_own_to_all_sent},
    Algorithm{"bruck", kAllGather, true, bruck_all_gather, bruck_rounds, bruck_all_gather_sent,
              bruck_all_gather_scratch},
    Algorithm{"hierarchical", kAllGather, true, hierarchical_all_gather,
              hierarchical_courier_rounds, hierarchical_all_gather_sent},

    Algorithm{"binomial", kBroadcast, true, binomial_broadcast, binomial_rounds,
              binomial_broadcast_sent},
    Algorithm{"double-tree", kBroadcast, true, double_tree_broadcast, double_tree_broadcast_rounds,
              double_tree_broadcast_sent},
    Algorithm{"direct", kBroadcast, true, direct_broadcast, direct_rounds, direct_broadcast_sent},
    Algorithm{"hierarchical", kBroadcast, true, hierarchical_broadcast, hierarchical_tree_rounds,
              hierarchical_broadcast_sent},

    Algorithm{"binomial", kReduce, true, binomial_reduce, binomial_rounds, binomial_reduce_sent},
    Algorithm{"double-tree", kReduce, false, double_tree_reduce, double_tree_reduce_rounds,
              double_tree_reduce_sent},
    Algorithm{"direct", kReduce, true, direct_reduce, direct_rounds, direct_reduce_sent,
              direct_reduce_scratch},
    Algorithm{"hierarchical", kReduce, false, hierarchical_reduce, hierarchical_tree_rounds,
              hierarchical_reduce_sent},

    Algorithm{"binomial", kGather, true, binomial_gather, binomial_chunks_rounds,
              binomial_gather_sent},
    Algorithm{"direct", kGather, true, direct_gather, direct_rounds, direct_gather_sent},

    Algorithm{"binomial", kScatter, true, binomial_scatter, binomial_chunks_rounds,
              binomial_scatter_sent},
    Algorithm{"direct", kScatter, true, direct_scatter, direct_rounds, direct_scatter_sent},

    Algorithm{"direct", kAllToAll, true, direct_all_to_all, direct_rounds,
              direct_chunk_to_each_sent, direct_chunks_scratch},
    Algorithm{"bruck", kAllToAll, true, bruck_all_to_all, bruck_rounds, bruck_all_to_all_sent,
              bruck_all_to_all_scratch},

    Algorithm{"dissemination", kBarrier, true, dissemination_barrier, dissemination_rounds,
              dissemination_barrier_sent},
};

}  // namespace

RankOrders orders_of(const RankPlan& plan) { return {.rings = plan.rings, .groups = plan.groups}; }

std::string_view to_string(Collective collective) {
  constexpr std::array<std::string_view, kCollectives.size()> kNames = {
      "all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce",
      "gather",     "scatter",        "all-to-all", "barrier"};
  return kNames[static_cast<size_t>(collective)];
}

std::span<const Collective> collectives() { return kCollectives; }

bool reduces(Collective collective) {
  return collective == kAllReduce || collective == kReduceScatter || collective == kReduce;
}

bool has_root(Collective collective) {
  return collective == kBroadcast || collective == kReduce || collective == kGather ||
         collective == kScatter;
}

bool root_gives(Collective collective) {
  return collective == kBroadcast || collective == kScatter;
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

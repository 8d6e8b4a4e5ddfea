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
    Algorithm{.name = "halving-doubling",
              .collective = kAllReduce,
              .layout_invariant = true,
              .run = halving_doubling_all_reduce,
              .rounds = halving_doubling_all_reduce_rounds},
    Algorithm{.name = "ring",
              .collective = kAllReduce,
              .layout_invariant = false,
              .run = ring_all_reduce,
              .rounds = ring_all_reduce_rounds,
              .sent = ring_all_reduce_sent,
              .uses = {.channels = true}},
    Algorithm{.name = "direct",
              .collective = kAllReduce,
              .layout_invariant = true,
              .run = direct_all_reduce,
              .rounds = direct_all_reduce_rounds,
              .sent = direct_all_reduce_sent,
              .scratch = direct_chunks_scratch,
              .medium = Medium::kSharedMemory},
    Algorithm{.name = "recursive-doubling",
              .collective = kAllReduce,
              .layout_invariant = true,
              .run = recursive_doubling_all_reduce,
              .rounds = recursive_doubling_rounds,
              .scratch = recursive_doubling_scratch},
    Algorithm{.name = "one-shot",
              .collective = kAllReduce,
              .layout_invariant = true,
              .run = one_shot_all_reduce,
              .rounds = direct_rounds,
              .sent = one_shot_sent,
              .scratch = one_shot_scratch},
    Algorithm{.name = "double-tree",
              .collective = kAllReduce,
              .layout_invariant = false,
              .run = double_tree_all_reduce,
              .rounds = double_tree_all_reduce_rounds,
              .uses = {.segments = true}},
    Algorithm{.name = "hierarchical",
              .collective = kAllReduce,
              .layout_invariant = false,
              .run = hierarchical_all_reduce,
              .rounds = hierarchical_all_reduce_rounds,
              .uses = {.hosts = true, .channels = true}},

    Algorithm{.name = "halving-doubling",
              .collective = kReduceScatter,
              .layout_invariant = true,
              .run = halving_doubling_reduce_scatter,
              .rounds = halving_doubling_reduce_scatter_rounds,
              .sent = halving_doubling_reduce_scatter_sent},
    Algorithm{.name = "ring",
              .collective = kReduceScatter,
              .layout_invariant = false,
              .run = ring_reduce_scatter,
              .rounds = ring_half_rounds,
              .sent = ring_reduce_scatter_sent,
              .uses = {.channels = true}},
    Algorithm{.name = "direct",
              .collective = kReduceScatter,
              .layout_invariant = true,
              .run = direct_reduce_scatter,
              .rounds = direct_rounds,
              .sent = direct_chunk_to_each_sent,
              .scratch = direct_chunks_scratch,
              .medium = Medium::kSharedMemory},
    Algorithm{.name = "hierarchical",
              .collective = kReduceScatter,
              .layout_invariant = false,
              .run = hierarchical_reduce_scatter,
              .rounds = hierarchical_relay_rounds,
              .sent = hierarchical_reduce_scatter_sent,
              .uses = {.hosts = true}},

    Algorithm{.name = "halving-doubling",
              .collective = kAllGather,
              .layout_invariant = true,
              .run = halving_doubling_all_gather,
              .rounds = halving_doubling_all_gather_rounds},
    Algorithm{.name = "ring",
              .collective = kAllGather,
              .layout_invariant = true,
              .run = ring_all_gather,
              .rounds = ring_half_rounds,
              .sent = ring_all_gather_sent,
              .uses = {.channels = true}},
    Algorithm{.name = "direct",
              .collective = kAllGather,
              .layout_invariant = true,
              .run = direct_all_gather,
              .rounds = direct_rounds,
              .sent = direct_own_to_all_sent,
              .medium = Medium::kSharedMemory},
    Algorithm{.name = "bruck",
              .collective = kAllGather,
              .layout_invariant = true,
              .run = bruck_all_gather,
              .rounds = bruck_rounds,
              .scratch = bruck_all_gather_scratch},
    Algorithm{.name = "hierarchical",
              .collective = kAllGather,
              .layout_invariant = true,
              .run = hierarchical_all_gather,
              .rounds = hierarchical_relay_rounds,
              .sent = hierarchical_all_gather_sent,
              .uses = {.hosts = true}},

    Algorithm{.name = "binomial",
              .collective = kBroadcast,
              .layout_invariant = true,
              .run = binomial_broadcast,
              .rounds = binomial_rounds},
    Algorithm{.name = "double-tree",
              .collective = kBroadcast,
              .layout_invariant = true,
              .run = double_tree_broadcast,
              .rounds = double_tree_broadcast_rounds,
              .uses = {.segments = true}},
    Algorithm{.name = "direct",
              .collective = kBroadcast,
              .layout_invariant = true,
              .run = direct_broadcast,
              .rounds = direct_rounds,
              .sent = direct_broadcast_sent,
              .medium = Medium::kSharedMemory},
    Algorithm{.name = "hierarchical",
              .collective = kBroadcast,
              .layout_invariant = true,
              .run = hierarchical_broadcast,
              .rounds = hierarchical_tree_rounds,
              .uses = {.hosts = true}},

    Algorithm{.name = "binomial",
              .collective = kReduce,
              .layout_invariant = true,
              .run = binomial_reduce,
              .rounds = binomial_rounds},
    Algorithm{.name = "double-tree",
              .collective = kReduce,
              .layout_invariant = false,
              .run = double_tree_reduce,
              .rounds = double_tree_reduce_rounds,
              .uses = {.segments = true}},
    Algorithm{.name = "direct",
              .collective = kReduce,
              .layout_invariant = true,
              .run = direct_reduce,
              .rounds = direct_rounds,
              .sent = direct_reduce_sent,
              .scratch = direct_reduce_scratch,
              .medium = Medium::kSharedMemory},
    Algorithm{.name = "hierarchical",
              .collective = kReduce,
              .layout_invariant = false,
              .run = hierarchical_reduce,
              .rounds = hierarchical_tree_rounds,
              .uses = {.hosts = true}},

    Algorithm{.name = "binomial",
              .collective = kGather,
              .layout_invariant = true,
              .run = binomial_gather,
              .rounds = binomial_chunks_rounds},
    Algorithm{.name = "direct",
              .collective = kGather,
              .layout_invariant = true,
              .run = direct_gather,
              .rounds = direct_rounds,
              .sent = direct_gather_sent,
              .medium = Medium::kSharedMemory},

    Algorithm{.name = "binomial",
              .collective = kScatter,
              .layout_invariant = true,
              .run = binomial_scatter,
              .rounds = binomial_chunks_rounds},
    Algorithm{.name = "direct",
              .collective = kScatter,
              .layout_invariant = true,
              .run = direct_scatter,
              .rounds = direct_rounds,
              .sent = direct_scatter_sent,
              .medium = Medium::kSharedMemory},

    Algorithm{.name = "direct",
              .collective = kAllToAll,
              .layout_invariant = true,
              .run = direct_all_to_all,
              .rounds = direct_rounds,
              .sent = direct_chunk_to_each_sent,
              .scratch = direct_chunks_scratch,
              .medium = Medium::kSharedMemory},
    Algorithm{.name = "bruck",
              .collective = kAllToAll,
              .layout_invariant = true,
              .run = bruck_all_to_all,
              .rounds = bruck_rounds,
              .scratch = bruck_all_to_all_scratch},

    Algorithm{.name = "dissemination",
              .collective = kBarrier,
              .layout_invariant = true,
              .run = dissemination_barrier,
              .rounds = dissemination_rounds,
              .medium = Medium::kSharedMemory},
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

const Algorithm* find_shared_algorithm(Collective collective) {
  const auto* row = std::find_if(kAlgorithms.begin(), kAlgorithms.end(), [&](const Algorithm& a) {
    return a.medium == Medium::kSharedMemory && a.collective == collective;
  });
  return row == kAlgorithms.end() ? nullptr : row;
}

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names;
  for (const Algorithm& row : kAlgorithms) {
    if (std::ranges::find(names, row.name) == names.end()) names.push_back(row.name);
  }
  return names;
}

}  // namespace gxp

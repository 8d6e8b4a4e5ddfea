#include "lib/collective/algorithm/algorithm.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lib/base/error.h"
#include "lib/collective/algorithm/binomial.h"
#include "lib/collective/algorithm/bruck.h"
#include "lib/collective/algorithm/direct.h"
#include "lib/collective/algorithm/double_tree.h"
#include "lib/collective/algorithm/halving_doubling.h"
#include "lib/collective/algorithm/hierarchical.h"
#include "lib/collective/algorithm/ring.h"
#include "lib/topo/plan/rank_plan.h"

namespace gxp {
namespace {

using enum Collective;
using enum Medium;

constexpr std::array kCollectives = {kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce,
                                     kGather,    kScatter,       kAllToAll,  kBarrier};

// Dissemination barrier: Hensgen, Finkel & Manber, Int. J. Parallel Program. 17(1), 1988.
// In round k every rank sends a token to rank + 2^k and waits for one from rank - 2^k; after
// ceil(log2 p) rounds each has heard, directly or not, from all.
void dissemination_barrier(Primitives& comm, const CallShape& /*shape*/) {
  const int p = comm.world_size();
  for (int distance = 1; distance < p; distance *= 2) {
    comm.send_and_recv_token((comm.rank() + distance) % p, (comm.rank() + p - distance) % p);
  }
}

using Run = void (*)(Primitives&, const CallShape&);
using Rounds = int (*)(const CallShape&);

constexpr Algorithm row(std::string_view name, Collective collective, Run run, Rounds rounds,
                        const AlgorithmTraits& traits = {}) {
  return {traits, name, collective, run, rounds};
}

constexpr std::array kAlgorithms = {
    row("halving-doubling", kAllReduce, halving_doubling_all_reduce,
        halving_doubling_all_reduce_rounds),
    row("ring", kAllReduce, ring_all_reduce, ring_all_reduce_rounds,
        {.layout_invariant = false, .sent = ring_all_reduce_sent, .uses = {.channels = true}}),
    row("direct", kAllReduce, direct_all_reduce, direct_all_reduce_rounds,
        {.sent = direct_all_reduce_sent,
         .scratch = direct_chunks_scratch,
         .medium = kSharedMemory}),
    row("recursive-doubling", kAllReduce, recursive_doubling_all_reduce, recursive_doubling_rounds,
        {.scratch = recursive_doubling_scratch}),
    row("one-shot", kAllReduce, one_shot_all_reduce, direct_rounds,
        {.sent = one_shot_sent, .scratch = one_shot_scratch}),
    row("double-tree", kAllReduce, double_tree_all_reduce, double_tree_all_reduce_rounds,
        {.layout_invariant = false, .uses = {.segments = true}}),
    row("hierarchical", kAllReduce, hierarchical_all_reduce, hierarchical_all_reduce_rounds,
        {.layout_invariant = false, .uses = {.hosts = true, .channels = true}}),

    row("halving-doubling", kReduceScatter, halving_doubling_reduce_scatter,
        halving_doubling_reduce_scatter_rounds, {.sent = halving_doubling_reduce_scatter_sent}),
    row("ring", kReduceScatter, ring_reduce_scatter, ring_half_rounds,
        {.layout_invariant = false, .sent = sent_all_but_own_chunk, .uses = {.channels = true}}),
    row("direct", kReduceScatter, direct_reduce_scatter, direct_rounds,
        {.sent = sent_all_but_own_chunk,
         .scratch = direct_chunks_scratch,
         .medium = kSharedMemory}),
    row("hierarchical", kReduceScatter, hierarchical_reduce_scatter, hierarchical_relay_rounds,
        {.layout_invariant = false, .sent = sent_all_but_own_chunk, .uses = {.hosts = true}}),

    row("halving-doubling", kAllGather, halving_doubling_all_gather, recursive_doubling_rounds),
    row("ring", kAllGather, ring_all_gather, ring_half_rounds,
        {.sent = ring_all_gather_sent, .uses = {.channels = true}}),
    row("direct", kAllGather, direct_all_gather, direct_rounds,
        {.sent = direct_own_to_all_sent, .medium = kSharedMemory}),
    row("bruck", kAllGather, bruck_all_gather, log2_rounds, {.scratch = bruck_all_gather_scratch}),
    row("hierarchical", kAllGather, hierarchical_all_gather, hierarchical_relay_rounds,
        {.sent = hierarchical_all_gather_sent, .uses = {.hosts = true}}),

    row("binomial", kBroadcast, binomial_broadcast, log2_rounds),
    row("double-tree", kBroadcast, double_tree_broadcast, double_tree_broadcast_rounds,
        {.uses = {.segments = true}}),
    row("direct", kBroadcast, direct_broadcast, direct_rounds, {.medium = kSharedMemory}),
    row("hierarchical", kBroadcast, hierarchical_broadcast, hierarchical_tree_rounds,
        {.uses = {.hosts = true}}),

    row("binomial", kReduce, binomial_reduce, log2_rounds),
    row("double-tree", kReduce, double_tree_reduce, double_tree_reduce_rounds,
        {.layout_invariant = false, .uses = {.segments = true}}),
    row("direct", kReduce, direct_reduce, direct_rounds,
        {.scratch = direct_reduce_scratch, .medium = kSharedMemory}),
    row("hierarchical", kReduce, hierarchical_reduce, hierarchical_tree_rounds,
        {.layout_invariant = false, .uses = {.hosts = true}}),

    row("binomial", kGather, binomial_gather, binomial_chunks_rounds),
    row("direct", kGather, direct_gather, direct_rounds, {.medium = kSharedMemory}),

    row("binomial", kScatter, binomial_scatter, binomial_chunks_rounds),
    row("direct", kScatter, direct_scatter, direct_rounds, {.medium = kSharedMemory}),

    row("direct", kAllToAll, direct_all_to_all, direct_rounds,
        {.sent = sent_all_but_own_chunk,
         .scratch = direct_chunks_scratch,
         .medium = kSharedMemory}),
    row("bruck", kAllToAll, bruck_all_to_all, log2_rounds, {.scratch = bruck_all_to_all_scratch}),

    row("dissemination", kBarrier, dissemination_barrier, log2_rounds, {.medium = kSharedMemory}),
};

}  // namespace

RankOrders orders_of(const RankPlan& plan) { return {.rings = plan.rings, .groups = plan.groups}; }

std::string_view to_string(Collective collective) {
  constexpr std::array<std::string_view, kCollectives.size()> kNames = {
      "all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce",
      "gather",     "scatter",        "all-to-all", "barrier"};
  return kNames[size_t(collective)];
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
  const auto i = size_t(index);
  const auto n = size_t(world_size_);
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

int log2_rounds(const CallShape& shape) { return std::bit_width(unsigned(shape.world_size) - 1); }

uint64_t sent_all_but_own_chunk(int rank, const CallShape& shape) {
  return shape.count - Chunks(shape)[rank].count;
}

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(std::string_view name, Collective collective) {
  for (const Algorithm& row : kAlgorithms) {
    if (row.name == name && row.collective == collective) return &row;
  }
  return nullptr;
}

const Algorithm* find_shared_algorithm(Collective collective) {
  for (const Algorithm& row : kAlgorithms) {
    if (row.medium == Medium::kSharedMemory && row.collective == collective) return &row;
  }
  return nullptr;
}

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names;
  for (const Algorithm& row : kAlgorithms) {
    if (std::ranges::find(names, row.name) == names.end()) names.push_back(row.name);
  }
  return names;
}

}  // namespace gxp

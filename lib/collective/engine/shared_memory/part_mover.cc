#include "lib/collective/engine/shared_memory/part_mover.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "lib/base/host_caches.h"
#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

using enum Collective;

void PartMover::take(const Invocation& inv, const RankBuffers& buffers) {
  const int root = inv.call.root;
  const bool is_root = inv.rank == root;
  const auto take_part = [&](int from, Range theirs, Range mine) {
    if (from == inv.rank) return keep_own(inv, mine);
    if (mine.count == 0) return;
    const size_t begin = theirs.begin - inv.shape.inputs[size_t(from)].begin;
    fetch(buffers.mapped, from, buffers.inputs[size_t(from)] + begin, inv.output(mine), mine.count);
  };
  const auto fold_part = [&](Range part) {
    for (size_t rank = 0; rank < fold.sources.size(); ++rank)
      fold.sources[rank] = buffers.inputs[rank] + part.begin;
    fold.targets.assign({inv.output_data});
    run_fold(inv.call, part.count, false);
  };
  const Range own = inv.part_of(inv.rank);
  const auto ranks = int(inv.shape.inputs.size());
  switch (inv.call.collective) {
    case kAllReduce:
      return fold_part(inv.own_output());
    case kReduce:
      if (is_root) fold_part(inv.own_output());
      return;
    case kReduceScatter:
      return fold_part(own);
    case kGather:
      if (!is_root) return;
      [[fallthrough]];
    case kAllGather:
      for (int rank = 0; rank < ranks; ++rank)
        take_part(rank, inv.part_of(rank), inv.part_of(rank));
      return;
    case kBroadcast:
      return take_part(root, inv.part_of(root), inv.part_of(root));
    case kScatter:
      return take_part(root, own, own);
    case kAllToAll:
      for (int rank = 0; rank < ranks; ++rank) take_part(rank, own, inv.part_of(rank));
      return;
    case kBarrier:
      return;
  }
}

void PartMover::keep_own(const Invocation& inv, Range range) {
  if (range.count == 0 || inv.in_place(range)) return;
  copy(inv.output(range), inv.input(range), range.count);
}

void PartMover::fetch(bool mapped, int rank, const std::byte* there, std::byte* here,
                      size_t bytes) {
  if (mapped) {
    std::memcpy(here, there, bytes);
  } else {
    sync_.arena()
        .memory_of_rank(sync_.member(rank))
        .read(uint64_t(there), {here, bytes, MemorySpace::kHost});
  }
}

void PartMover::store(bool mapped, int rank, std::byte* there, const std::byte* here,
                      size_t bytes) {
  if (mapped) {
    std::memcpy(there, here, bytes);
  } else {
    sync_.arena()
        .memory_of_rank(sync_.member(rank))
        .write(uint64_t(there), {here, bytes, MemorySpace::kHost});
  }
}

void PartMover::copy(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

void PartMover::copy_input(const Invocation& inv, std::byte* to, Range range) {
  std::memcpy(to, inv.input(range), range.count);
  if (inv.is_scaled())
    scale({to, range.count, MemorySpace::kHost}, inv.call.dtype, inv.call.factor);
}

std::byte* PartMover::staging(int rank) const { return sync_.slots(rank).staging; }

// What is in place then goes from cache to cache once, to be read and to be written.
void PartMover::expect_write(std::byte* target, size_t bytes) { prefetch_to_write(target, bytes); }

// There and back through L1, or L2 where each copy is a system call.
size_t PartMover::swapped_bytes(bool mapped) const {
  return mapped
             ? std::bit_floor(own_caches().l1_bytes / 8)
             : std::clamp<size_t>(std::bit_floor(own_caches().l2_bytes / 16), 16 << 10, 64 << 10);
}

void PartMover::run_fold(const Call& call, size_t bytes, bool by_copies) {
  constexpr size_t kInL1 = 16 << 10;
  auto& [sources, targets] = fold;
  const bool averages = call.op == ReduceOp::kAvg;
  if (!averages && (!by_copies || targets.size() == 1))
    return fold_all(targets, sources, bytes, call.dtype, call.op);
  for (size_t at = 0; at < bytes; at += kInL1) {
    const size_t size = std::min(kInL1, bytes - at);
    std::byte* const target = targets.front() + at;
    fold_all(std::span(&target, 1), sources, size, call.dtype, call.op);
    if (averages)
      scale({target, size, MemorySpace::kHost}, call.dtype, 1.0 / double(sources.size()));
    for (size_t i = 1; i < targets.size(); ++i) std::memcpy(targets[i] + at, target, size);
    for (const std::byte*& source : sources) source += size;
  }
}

}  // namespace gxp

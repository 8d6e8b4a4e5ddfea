#include "lib/collective/engine/shared_memory/direct_method.h"

#include <algorithm>
#include <bit>

#include "lib/base/bytes.h"
#include "lib/base/host_caches.h"

namespace gxp {
namespace {

using enum Collective;

// Bytes of each rank's that are folded at a time: all of them and the sum stay in L2.
size_t fetched_tile(size_t slots) {
  const size_t most = std::min(SharedSlots::kStagingBytes, own_caches().l2_bytes / 2) / slots;
  return std::clamp<size_t>(std::bit_floor(most), 4 << 10, 128 << 10);
}

}  // namespace

bool DirectMethod::can_run(const Invocation& inv, const RankBuffers& buffers) {
  if (inv.call.collective != kAllToAll) return true;
  for (size_t rank = 0; rank < buffers.inputs.size(); ++rank) {
    if ((buffers.inputs[rank] == buffers.outputs[rank]) != inv.in_place({})) return false;
  }
  return true;
}

void DirectMethod::run(const Invocation& inv, const RankBuffers& buffers) {
  if (reduces(inv.call.collective) && !buffers.mapped) {
    pull_and_fold(inv, buffers);
  } else {
    move(inv, buffers);
  }
  mover_.finish(inv);
  sync_.synchronise(inv);
}

void DirectMethod::move(const Invocation& inv, const RankBuffers& buffers) {
  switch (inv.call.collective) {
    case kAllReduce:
    case kReduce:
      return fold_range(inv, buffers, inv.shape.shares[size_t(inv.rank)]);
    case kGather:
      return give_part(inv, buffers);
    case kBroadcast:
      return spread_range(inv, buffers, inv.shape.shares[size_t(inv.rank)]);
    case kAllToAll:
      if (inv.in_place({})) return swap_chunks(inv, buffers);
      [[fallthrough]];
    default:
      return mover_.take(inv, buffers);
  }
}

// Through tiles that stay in the L2 cache. Only this rank touches its part of any buffer.
void DirectMethod::pull_and_fold(const Invocation& inv, const RankBuffers& buffers) {
  const Range part = inv.part_of(inv.rank);
  const size_t slots = size_t(sync_.world_size()) + 1;
  const size_t step = fetched_tile(slots);
  std::byte* const tiles = mover_.staging(inv.rank);
  for (size_t at = 0; at < part.count; at += step) {
    const Range piece{part.begin + at, std::min(step, part.count - at)};
    for (int rank = 0; rank < sync_.world_size(); ++rank) {
      std::byte* const tile = tiles + size_t(rank + 1) * step;
      if (rank != inv.rank)
        mover_.fetch(false, rank, buffers.inputs[size_t(rank)] + piece.begin, tile, piece.count);
      mover_.fold.sources[size_t(rank)] = rank == inv.rank ? inv.input(piece) : tile;
    }
    std::byte* const sum = inv.own_output().count > 0 ? inv.output(piece) : tiles;
    mover_.fold.targets.assign({sum});
    mover_.run_fold(inv.call, piece.count, false);
    spread_sum(inv, buffers, piece, sum);
  }
}

void DirectMethod::spread_sum(const Invocation& inv, const RankBuffers& buffers, Range piece,
                              const std::byte* sum) {
  if (inv.call.collective == kReduceScatter) return;
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    if (rank == inv.rank || inv.shape.outputs[size_t(rank)].count == 0) continue;
    mover_.store(false, rank, buffers.outputs[size_t(rank)] + piece.begin, sum, piece.count);
  }
}

void DirectMethod::move_range(const Invocation& inv, const RankBuffers& buffers, Range range) {
  if (reduces(inv.call.collective)) return fold_range(inv, buffers, range);
  spread_range(inv, buffers, range);
}

void DirectMethod::fold_range(const Invocation& inv, const RankBuffers& buffers, Range range) {
  for (size_t i = 0; i < mover_.fold.sources.size(); ++i)
    mover_.fold.sources[i] = buffers.inputs[i] + range.begin;
  mover_.fold.targets.clear();
  for (std::byte* output : buffers.outputs) {
    if (output == nullptr) continue;
    mover_.fold.targets.push_back(output + range.begin);
    mover_.expect_write(mover_.fold.targets.back(), range.count);
  }
  mover_.run_fold(inv.call, range.count, false);
}

// So that the root need not take all alone.
void DirectMethod::give_part(const Invocation& inv, const RankBuffers& buffers) {
  const Range part = inv.part_of(inv.rank);
  const int root = inv.call.root;
  if (inv.rank == root) return mover_.keep_own(inv, part);
  if (part.count == 0) return;
  mover_.store(buffers.mapped, root, buffers.outputs[size_t(root)] + part.begin, inv.input(part),
               part.count);
}

// So that no rank looks on: each takes its share from the root and gives it to all who lack it.
void DirectMethod::spread_range(const Invocation& inv, const RankBuffers& buffers, Range range) {
  const int root = inv.call.root;
  if (range.count == 0) return;
  std::byte* const mine = inv.output(range);
  if (inv.rank == root) {
    mover_.keep_own(inv, range);
  } else {
    mover_.fetch(buffers.mapped, root, buffers.inputs[size_t(root)] + range.begin, mine,
                 range.count);
  }
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    std::byte* const theirs = buffers.outputs[size_t(rank)];
    const bool has_it = rank == root && theirs == buffers.inputs[size_t(rank)];
    if (rank == inv.rank || has_it) continue;
    mover_.store(buffers.mapped, rank, theirs + range.begin, mine, range.count);
  }
}

// Chunk j of rank i against chunk i of rank j: the lower rank swaps the first half.
void DirectMethod::swap_chunks(const Invocation& inv, const RankBuffers& buffers) {
  const Range own = inv.part_of(inv.rank);
  const size_t half = std::min(own.count, round_up(own.count / 2, size_t{64}));
  const size_t step = mover_.swapped_bytes(buffers.mapped);
  std::byte* const held = mover_.staging(inv.rank);
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    if (rank == inv.rank) continue;
    const size_t end = inv.rank < rank ? half : own.count;
    std::byte* const mine = inv.output(inv.part_of(rank));
    std::byte* const theirs = buffers.outputs[size_t(rank)] + own.begin;
    for (size_t at = inv.rank < rank ? 0 : half; at < end; at += step) {
      const size_t size = std::min(step, end - at);
      mover_.fetch(buffers.mapped, rank, theirs + at, held, size);
      mover_.store(buffers.mapped, rank, theirs + at, mine + at, size);
      mover_.copy(mine + at, held, size);
    }
  }
}

}  // namespace gxp

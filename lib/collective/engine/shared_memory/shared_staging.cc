// Large calls on ordinary memory, through tiles that stay in the L2 cache.
#include <algorithm>
#include <cstring>

#include "lib/collective/engine/shared_memory/shared_executor.h"

namespace gxp {
namespace {

using enum Collective;

constexpr size_t kMinTileBytes = 16 << 10;  // a synchronisation costs as much as 2 KiB or so

}  // namespace

// How a large call is cut: tile t holds piece t of each part. The slots lie in the staging memory
// of each rank: three tiles of what it gives, two of its sums.
struct SharedExecutor::Tiling {
  static constexpr uint64_t kInSlots = 3;
  static constexpr uint64_t kSumSlots = 2;
  // Of two or more ranks; a sum is one part.
  static_assert(kInSlots * kMostTileBytes + kSumSlots * kMostTileBytes / 2 <=
                SharedSlots::kStagingBytes);

  uint64_t parts = 0;  // that a rank stages at most
  size_t piece_bytes = 0;
  uint64_t tiles = 0;

  [[nodiscard]] Range piece(Range part, uint64_t tile) const {
    const size_t begin = std::min(part.count, tile * piece_bytes);
    return {part.begin + begin, std::min(piece_bytes, part.count - begin)};
  }
  [[nodiscard]] std::byte* given(SharedSlots& slots, uint64_t tile, uint64_t slot) const {
    return slots.staging + (tile % kInSlots * parts + slot) * piece_bytes;
  }
  [[nodiscard]] std::byte* sum(SharedSlots& slots, uint64_t tile) const {
    return slots.staging + (kInSlots * parts + tile % kSumSlots) * piece_bytes;
  }
};

// In iteration i a rank copies tile i in, and after all have done iteration i - 1, folds tile i - 1
// and copies tile i - 2 (without sums: i - 1) out. A slot is written again after its readers have
// announced the iteration in which they read it: hence their numbers.
void SharedExecutor::run_staged(const Job& job) {
  const Collective collective = job.call.collective;
  const bool whole = collective == kBroadcast || collective == kAllGather || collective == kGather;
  // Ranks that share CPUs cannot work on one tile while another is on its way.
  const size_t tile_bytes =
      space_.oversubscribed() ? tile_bytes_ : std::clamp(job.bytes() / 4, kMinTileBytes, tile_bytes_);
  Tiling tiling{.parts = whole ? 1 : uint64_t(world_size())};
  tiling.piece_bytes = std::max<size_t>(tile_bytes / tiling.parts / 64 * 64, 64);
  size_t longest = 0;
  for (int rank = 0; rank < world_size(); ++rank) {
    longest = std::max(longest, job.part_of(rank).count);
  }
  tiling.tiles = (longest + tiling.piece_bytes - 1) / tiling.piece_bytes;
  const bool folds = reduces(job.call.collective);
  const uint64_t delay = folds ? 2 : 1;  // of copying out
  for (uint64_t i = 0; i < tiling.tiles + delay; ++i) {
    if (i < tiling.tiles) stage_in(job, tiling, i);
    if (i > 0) await_phase(job, phase_ + i, i);
    if (folds && i > 0 && i <= tiling.tiles) fold_tile(job, tiling, i - 1);
    if (i >= delay) copy_out(job, tiling, i - delay);
    publish_phase(phase_ + i + 1);
  }
  phase_ += tiling.tiles + delay;
}

void SharedExecutor::stage_in(const Job& job, const Tiling& tiling, uint64_t tile) {
  const Call& call = job.call;
  const bool scaled = job.is_scaled();
  if (root_gives(call.collective) && rank_ != call.root) return;
  const auto give = [&](int part, uint64_t slot) {
    const Range piece = tiling.piece(job.part_of(part), tile);
    if (piece.count == 0) return;
    std::byte* const place = tiling.given(slots_of(rank_), tile, slot);
    std::memcpy(place, job.input(piece), piece.count);
    if (scaled) scale({place, piece.count, MemorySpace::kHost}, call.dtype, call.factor);
  };
  if (tiling.parts == 1) return give(rank_, 0);
  for (int part = 0; part < world_size(); ++part) {
    if (part != rank_ || scaled) give(part, uint64_t(part));
  }
}

void SharedExecutor::fold_tile(const Job& job, const Tiling& tiling, uint64_t tile) {
  const Call& call = job.call;
  const Range piece = tiling.piece(job.part_of(rank_), tile);
  if (piece.count == 0) return;
  for (int rank = 0; rank < world_size(); ++rank) {
    const bool own = rank == rank_ && !job.is_scaled();
    sources_[size_t(rank)] =
        own ? job.input(piece) : tiling.given(slots_of(rank), tile, uint64_t(rank_));
  }
  targets_.clear();
  if (job.own_output().count > 0) targets_.push_back(job.output(piece));
  if (call.collective == kAllReduce || targets_.empty()) {
    targets_.push_back(tiling.sum(slots_of(rank_), tile));
  }
  // The slot's lines are in the caches of its last readers: a copy overwrites them unread.
  fold_sources(job, piece.count, true);
}

void SharedExecutor::copy_out(const Job& job, const Tiling& tiling, uint64_t tile) {
  const Call& call = job.call;
  if (job.own_output().count == 0 || call.collective == kReduceScatter) return;
  const auto take = [&](Range part, const std::byte* from) {
    const Range piece = tiling.piece(part, tile);
    if (piece.count > 0) std::memcpy(job.output(piece), from, piece.count);
  };
  if (root_gives(call.collective)) {
    const uint64_t slot = call.collective == kScatter ? uint64_t(rank_) : 0;
    const Range part = job.part_of(call.collective == kScatter ? rank_ : call.root);
    if (rank_ == call.root) return keep_own(job, tiling.piece(part, tile));
    return take(part, tiling.given(slots_of(call.root), tile, slot));
  }
  for (int rank = 0; rank < world_size(); ++rank) {
    const Range part = job.part_of(rank);
    if (rank == rank_) {
      if (!reduces(call.collective)) keep_own(job, tiling.piece(part, tile));
    } else if (reduces(call.collective)) {
      take(part, tiling.sum(slots_of(rank), tile));
    } else {
      const uint64_t slot = call.collective == kAllToAll ? uint64_t(rank_) : 0;
      take(part, tiling.given(slots_of(rank), tile, slot));
    }
  }
}

}  // namespace gxp

#include "lib/collective/engine/shared_memory/tiled_method.h"

#include <algorithm>

namespace gxp {
namespace {

using enum Collective;

}  // namespace

// How a large call is cut: tile t holds piece t of each part. The slots lie in the staging memory
// of each rank: three tiles of what it gives, two of its sums.
struct TiledMethod::Tiling {
  static_assert(staging_bytes(kMostTileBytes) <= SharedSlots::kStagingBytes);

  uint64_t parts = 0;  // that a rank stages at most
  size_t piece_bytes = 0;
  uint64_t tiles = 0;

  [[nodiscard]] Range piece(Range part, uint64_t tile) const {
    const size_t begin = std::min(part.count, tile * piece_bytes);
    return {part.begin + begin, std::min(piece_bytes, part.count - begin)};
  }
  [[nodiscard]] std::byte* given(std::byte* staging, uint64_t tile, uint64_t slot) const {
    return staging + (tile % kInSlots * parts + slot) * piece_bytes;
  }
  [[nodiscard]] std::byte* sum(std::byte* staging, uint64_t tile) const {
    return staging + (kInSlots * parts + tile % kSumSlots) * piece_bytes;
  }
};

// In iteration i a rank copies tile i in, and after all have done iteration i - 1, folds tile i - 1
// and copies tile i - 2 (without sums: i - 1) out. A slot is written again after its readers have
// announced the iteration in which they read it: hence their numbers.
void TiledMethod::run(const Invocation& inv) {
  const Tiling tiling = cut(inv);
  const bool folds = reduces(inv.call.collective);
  const uint64_t delay = folds ? 2 : 1;  // of copying out
  const uint64_t before = sync_.phase();
  for (uint64_t i = 0; i < tiling.tiles + delay; ++i) {
    if (i < tiling.tiles) stage_in(inv, tiling, i);
    if (i > 0) sync_.await_phase(inv, before + i, i);
    if (folds && i > 0 && i <= tiling.tiles) fold_tile(inv, tiling, i - 1);
    if (i >= delay) copy_out(inv, tiling, i - delay);
    mover_.finish(inv);
    sync_.publish_phase(before + i + 1);
  }
  sync_.set_phase(before + tiling.tiles + delay);
}

TiledMethod::Tiling TiledMethod::cut(const Invocation& inv) const {
  const Collective collective = inv.call.collective;
  const bool whole = collective == kBroadcast || collective == kAllGather || collective == kGather;
  // Ranks that share CPUs cannot work on one tile while another is on its way.
  const size_t tile_bytes = sync_.arena().oversubscribed()
                                ? tile_bytes_
                                : std::clamp(inv.bytes() / 4, least_bytes_, tile_bytes_);
  Tiling tiling{.parts = whole ? 1 : uint64_t(sync_.world_size())};
  tiling.piece_bytes = std::max<size_t>(tile_bytes / tiling.parts / 64 * 64, 64);
  size_t longest = 0;
  for (const Range& part : inv.shape.parts) longest = std::max(longest, part.count);
  tiling.tiles = (longest + tiling.piece_bytes - 1) / tiling.piece_bytes;
  return tiling;
}

void TiledMethod::stage_in(const Invocation& inv, const Tiling& tiling, uint64_t tile) {
  const bool scaled = inv.is_scaled();
  if (root_gives(inv.call.collective) && inv.rank != inv.call.root) return;
  const auto give = [&](int part, uint64_t slot) {
    const Range piece = tiling.piece(inv.part_of(part), tile);
    if (piece.count == 0) return;
    mover_.copy_input(inv, tiling.given(mover_.staging(inv.rank), tile, slot), piece);
  };
  if (tiling.parts == 1) return give(inv.rank, 0);
  for (int part = 0; part < sync_.world_size(); ++part) {
    if (part != inv.rank || scaled) give(part, uint64_t(part));
  }
}

void TiledMethod::fold_tile(const Invocation& inv, const Tiling& tiling, uint64_t tile) {
  const Range piece = tiling.piece(inv.part_of(inv.rank), tile);
  if (piece.count == 0) return;
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    const bool own = rank == inv.rank && !inv.is_scaled();
    mover_.fold.sources[size_t(rank)] =
        own ? inv.input(piece) : tiling.given(mover_.staging(rank), tile, uint64_t(inv.rank));
  }
  mover_.fold.targets.clear();
  if (inv.own_output().count > 0) mover_.fold.targets.push_back(inv.output(piece));
  if (inv.call.collective == kAllReduce || mover_.fold.targets.empty()) {
    mover_.fold.targets.push_back(tiling.sum(mover_.staging(inv.rank), tile));
  }
  // The slot's lines are in the caches of its last readers: a copy overwrites them unread.
  mover_.run_fold(inv.call, piece.count, true);
}

void TiledMethod::copy_out(const Invocation& inv, const Tiling& tiling, uint64_t tile) {
  if (inv.own_output().count == 0 || inv.call.collective == kReduceScatter) return;
  const auto take = [&](Range part, const std::byte* from) {
    const Range piece = tiling.piece(part, tile);
    if (piece.count > 0) mover_.copy(inv.output(piece), from, piece.count);
  };
  if (root_gives(inv.call.collective)) {
    const uint64_t slot = inv.call.collective == kScatter ? uint64_t(inv.rank) : 0;
    const Range part = inv.part_of(inv.call.collective == kScatter ? inv.rank : inv.call.root);
    if (inv.rank == inv.call.root) return mover_.keep_own(inv, tiling.piece(part, tile));
    return take(part, tiling.given(mover_.staging(inv.call.root), tile, slot));
  }
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    const Range part = inv.part_of(rank);
    if (rank == inv.rank) {
      if (!reduces(inv.call.collective)) mover_.keep_own(inv, tiling.piece(part, tile));
    } else if (reduces(inv.call.collective)) {
      take(part, tiling.sum(mover_.staging(rank), tile));
    } else {
      const uint64_t slot = inv.call.collective == kAllToAll ? uint64_t(inv.rank) : 0;
      take(part, tiling.given(mover_.staging(rank), tile, slot));
    }
  }
}

}  // namespace gxp

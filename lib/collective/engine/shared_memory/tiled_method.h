// The method of large calls on ordinary memory (shared_executor.h): what peers need of a rank's
// input goes through tiles that stay in the L2 cache, and so do the sums that come back. One
// synchronisation a tile, in which the folds of one tile overlap the copies of its neighbours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/collective/engine/shared_memory/group_sync.h"
#include "lib/collective/engine/shared_memory/part_mover.h"

namespace gxp {

class TiledMethod {
 public:
  static constexpr size_t kMostTileBytes = 256 << 10;  // of the host's memory
  // What PartMover::staging() needs for such tiles.
  static constexpr size_t staging_bytes(size_t tile) {
    // A sum is one part of a tile, at most half of it: there are two ranks or more.
    return kInSlots * tile + kSumSlots * tile / 2;
  }

  TiledMethod(GroupSync& sync, PartMover& mover) : sync_(sync), mover_(mover) {}
  // Bytes of a tile of all parts together, at most and at least; the same on all ranks.
  void use_tiles_of(size_t bytes, size_t least = kLeastTileBytes) {
    tile_bytes_ = bytes;
    least_bytes_ = std::min(bytes, least);
  }
  void run(const Invocation& inv);

 private:
  static constexpr uint64_t kInSlots = 3;  // for tiles of what a rank gives
  static constexpr uint64_t kSumSlots = 2;
  static constexpr size_t kLeastTileBytes = 16 << 10;  // a synchronisation costs 2 KiB or so
  struct Tiling;
  [[nodiscard]] Tiling cut(const Invocation& inv) const;
  void stage_in(const Invocation& inv, const Tiling& tiling, uint64_t tile);
  void fold_tile(const Invocation& inv, const Tiling& tiling, uint64_t tile);
  void copy_out(const Invocation& inv, const Tiling& tiling, uint64_t tile);

  GroupSync& sync_;
  PartMover& mover_;
  size_t tile_bytes_ = kMostTileBytes;
  size_t least_bytes_ = kLeastTileBytes;
};

}  // namespace gxp

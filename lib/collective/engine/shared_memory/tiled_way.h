// The way of large calls on ordinary memory (shared_executor.h): what peers need of a rank's input
// goes through tiles that stay in the L2 cache, and so do the sums that come back. One
// synchronisation a tile, in which the folds of one tile overlap the copies of its neighbours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/collective/engine/shared_memory/group_sync.h"
#include "lib/collective/engine/shared_memory/part_mover.h"

namespace gxp {

class TiledWay {
 public:
  static constexpr size_t kMostTileBytes = 256 << 10;

  TiledWay(GroupSync& sync, PartMover& mover) : sync_(sync), mover_(mover) {}
  // Bytes of a tile of all parts together, at most kMostTileBytes; the same on all ranks.
  void use_tiles_of(size_t bytes) { tile_bytes_ = bytes; }
  void run(const Invocation& inv);

 private:
  struct Tiling;
  [[nodiscard]] Tiling cut(const Invocation& inv) const;
  void stage_in(const Invocation& inv, const Tiling& tiling, uint64_t tile);
  void fold_tile(const Invocation& inv, const Tiling& tiling, uint64_t tile);
  void copy_out(const Invocation& inv, const Tiling& tiling, uint64_t tile);

  GroupSync& sync_;
  PartMover& mover_;
  size_t tile_bytes_ = kMostTileBytes;
};

}  // namespace gxp

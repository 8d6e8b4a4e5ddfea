// Takes, gives and folds parts of the ranks' buffers: what the methods of a call have in common
// (shared_executor.h).
#pragma once

#include <cstddef>
#include <vector>

#include "lib/collective/engine/shared_memory/group_sync.h"
#include "lib/collective/engine/shared_memory/shared_call.h"

namespace gxp {

// The ranks' buffers of a call, by rank; null where a rank has no such buffer, or nobody touches
// it.
struct RankBuffers {
  bool mapped = true;  // in this process; else they are addresses in the ranks' own processes
  std::vector<const std::byte*> inputs{};
  std::vector<std::byte*> outputs{};
};

// The operands of a fold: one version from each rank, and one or more targets for the result.
struct VersionFold {
  std::vector<const std::byte*> sources{};  // by rank
  std::vector<std::byte*> targets{};
};

// For host memory; a device's parts are moved by device_memory/device_executor.h.
class PartMover {
 public:
  explicit PartMover(GroupSync& sync) : sync_(sync) {
    fold.sources.resize(size_t(sync.world_size()));
  }
  PartMover(const PartMover&) = delete;
  PartMover& operator=(const PartMover&) = delete;
  virtual ~PartMover() = default;

  // Takes all that this rank's output needs from the ranks' inputs.
  void take(const Invocation& inv, const RankBuffers& buffers);
  // Copies this rank's input to its output.
  void keep_own(const Invocation& inv, Range range);

  // Copy from and to a buffer of `rank`, in which `there` points.
  virtual void fetch(bool mapped, int rank, const std::byte* there, std::byte* here, size_t bytes);
  virtual void store(bool mapped, int rank, std::byte* there, const std::byte* here, size_t bytes);
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes);
  // This rank's input, times its factor where inputs have one.
  virtual void copy_input(const Invocation& inv, std::byte* to, Range range);
  // Carries out `fold` in the order of reduction_tree.h. With `by_copies` it folds into the first
  // target and copies the result to the others; without, it folds into all at once. An average is
  // divided while it is in the L1 cache.
  virtual void run_fold(const Call& call, size_t bytes, bool by_copies);
  // Memory of a rank for tiles and sums, which all ranks reach.
  [[nodiscard]] virtual std::byte* staging(int rank) const;
  // A hint that this rank will soon write to `target`.
  virtual void expect_write(std::byte* target, size_t bytes);
  // Bytes that two ranks swap at a time.
  [[nodiscard]] virtual size_t swapped_bytes(bool mapped) const;
  // Returns when all copies and folds that were begun are done and visible to peers.
  virtual void finish(const Invocation& /*inv*/) {}

  VersionFold fold;  // for temporary use; does not persist

 protected:
  GroupSync& sync_;
};

}  // namespace gxp

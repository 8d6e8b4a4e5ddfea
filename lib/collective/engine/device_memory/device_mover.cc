#include "lib/collective/engine/device_memory/device_mover.h"

#include <span>

namespace gxp {

void DeviceMover::fetch(bool /*mapped*/, int /*rank*/, const std::byte* there, std::byte* here,
                        size_t bytes) {
  copy(here, there, bytes);
}

void DeviceMover::store(bool /*mapped*/, int /*rank*/, std::byte* there, const std::byte* here,
                        size_t bytes) {
  copy(there, here, bytes);
}

void DeviceMover::copy(std::byte* to, const std::byte* from, size_t bytes) {
  stream_->copy({to, bytes, MemorySpace::kCuda}, {from, bytes, MemorySpace::kCuda});
}

void DeviceMover::copy_input(const Invocation& inv, std::byte* to, Range range) {
  const std::byte* const from = inv.input(range);
  if (!inv.is_scaled()) return copy(to, from, range.count);
  peers_->folds().fold_all(*stream_, std::span(&to, 1), std::span(&from, 1), range.count,
                           inv.call.dtype, inv.call.op,
                           {.factor = inv.call.factor, .blocks = blocks_});
}

void DeviceMover::run_fold(const Call& call, size_t bytes, bool /*by_copies*/) {
  FoldOptions options{.blocks = blocks_};
  if (call.op == ReduceOp::kAvg) options.factor = 1.0 / double(fold.sources.size());
  peers_->folds().fold_all(*stream_, fold.targets, fold.sources, bytes, call.dtype, call.op,
                           options);
}

}  // namespace gxp

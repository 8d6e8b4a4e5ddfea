// Reductions of memory that a device reaches, some of it its peers': fold_all() and scale() of
// reduce_op.h, with the same bits. And barriers between its streams and those of its peers.
//   Memory  of the stream's device, or of others that it reaches (device/device_sharing.h). Aligned
//           to 16 bytes it is read and written four to eight times as fast.
//   Order   queued on `stream`, after what was queued there before; nothing waits.
//   SMs     at most kBlocks of a GPU's SMs by default, so that a reduction leaves most SMs to
//           concurrent compute kernels: 32 keep an NVLink 4 port of 450 GB/s busy, since each has
//           64 KiB of loads in flight (512 threads, eight of 16 bytes).
//   Errors  kDevice.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "kernels/device_barriers.h"
#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"
#include "lib/device/stream.h"

namespace gxp {

struct FoldOptions {
  std::optional<double> factor{};  // of sums: the result is scaled by it (scale())
  unsigned blocks = 0;             // of threads, at most; 0: DeviceFolds::kBlocks
};

class DeviceFolds {
 public:
  static constexpr size_t kMostSources = kMaxBarrierRanks;  // of as many ranks
  static constexpr unsigned kBlocks = 32;
  // Keep a GPU's own memory busy: four blocks for each multiprocessor of an H100. There, 32 blocks
  // read and write 1.2 TB/s (2 sources) and 1.7 TB/s (4 sources), where copies reach 2.9 TB/s.
  static constexpr unsigned kWideBlocks = 528;

  virtual ~DeviceFolds() = default;
  // fold_all() of up to kMostSources sources into as many targets.
  virtual void fold_all(Stream& stream, std::span<std::byte* const> targets,
                        std::span<const std::byte* const> sources, size_t bytes, DType dtype,
                        ReduceOp op, const FoldOptions& options) = 0;
  // Queues that the stream waits for its peers' (math/device_barrier.h): work queued on it before
  // is visible to all work that the peers queue after the same barrier. It takes one
  // multiprocessor, so each device takes part as one rank only; kernels of ranks that share a
  // device might wait for each other's turn. A wait ends, without the others, when the control says
  // so.
  virtual void barrier(Stream& stream, const DeviceBarrier& barrier) = 0;
};

}  // namespace gxp

// Reductions of memory that a device reaches, some of it its peers': fold_all() and scale() of
// reduce_op.h, with the same bits.
//   Memory  of the stream's device, or of others that it reaches (device/device_sharing.h). Aligned
//           to 16 bytes it is read and written four to eight times as fast.
//   Order   queued on `stream`, after what was queued there before; nothing waits.
//   SMs     at most kBlocks of a GPU's multiprocessors, so that a reduction leaves most of them to
//           the arithmetic beside it: 32 keep an NVLink 4 port of 450 GB/s busy, since each has 64
//           KiB of loads in flight (512 threads, eight of 16 bytes).
//   Errors  kDevice.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"
#include "lib/device/stream.h"

namespace gxp {

class DeviceFolds {
 public:
  static constexpr size_t kMostSources = 64;
  static constexpr unsigned kBlocks = 32;

  virtual ~DeviceFolds() = default;
  // fold_all() of up to kMostSources sources into as many targets; of sums also scale() of the
  // result by `factor`, if there is one.
  virtual void fold_all(Stream& stream, std::span<std::byte* const> targets,
                        std::span<const std::byte* const> sources, size_t bytes, DType dtype,
                        ReduceOp op, std::optional<double> factor) = 0;
};

}  // namespace gxp

// Reductions of memory that a device reaches, some of it its peers': fold_all() and scale() of
// reduce_op.h, with the same bits. And where its streams meet those of its peers.
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

#include "kernels/device_meetings.h"
#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"
#include "lib/device/stream.h"

namespace gxp {

class DeviceFolds {
 public:
  static constexpr size_t kMostSources = kMostMeeting;  // of as many ranks
  static constexpr unsigned kBlocks = 32;

  virtual ~DeviceFolds() = default;
  // fold_all() of up to kMostSources sources into as many targets; of sums also scale() of the
  // result by `factor`, if there is one.
  virtual void fold_all(Stream& stream, std::span<std::byte* const> targets,
                        std::span<const std::byte* const> sources, size_t bytes, DType dtype,
                        ReduceOp op, std::optional<double> factor) = 0;
  // Queues that the stream waits for its peers' (math/meeting.h): what it was given before is seen
  // by all that they are given behind the same meeting. It takes one multiprocessor, so each
  // device meets as one rank only; kernels of ranks that share a device might wait for each other's
  // turn. A wait ends, without the others, when the control says so.
  virtual void meet(Stream& stream, const Meeting& meeting) = 0;
};

}  // namespace gxp

// The part of CUDA that engine nccl needs: one GPU and one of its streams, which gets all of a
// rank's NCCL work. The calls of all groups therefore have one order on the GPU, that of the host.
// With CUDA it is make_cuda_queue(); without, the engine's own logic can be tested.
//   Threads  one at a time, any; the GPU becomes the calling thread's. Marks: any.
//   Errors   kDevice.
#pragma once

#include <memory>

#include "lib/base/error.h"
#include "lib/collective/engine/nccl/nccl_library.h"
#include "lib/device/device.h"
#include "lib/device/memory.h"
#include "lib/device/stream.h"

namespace gxp {

// A point in a queue.
class NcclMark {
 public:
  virtual ~NcclMark() = default;
  // Whether all that was queued before it is done.
  [[nodiscard]] virtual bool passed() = 0;
};

class NcclQueue {
 public:
  virtual ~NcclQueue() = default;
  [[nodiscard]] virtual Device& device() = 0;
  // The stream on which NCCL queues its work.
  [[nodiscard]] virtual NcclStream stream() = 0;
  // Queues a copy between host and GPU, or on either.
  virtual void copy(Memory to, ConstMemory from) = 0;
  // Whether all that was queued is done.
  [[nodiscard]] virtual bool done() = 0;
  // The end of all that was queued so far.
  [[nodiscard]] virtual std::unique_ptr<NcclMark> mark() = 0;
  // Work queued here from now on runs after all work already queued on `stream`, a stream of the
  // same device. For a Work of that stream, or while nothing is queued there.
  virtual void follow(Stream& stream) = 0;
  // Work queued on `stream` from now on runs after all work already queued here. The same.
  virtual void precede(Stream& stream) = 0;
};

// Only in builds with GXP_CUDA=ON. On `device`, a GPU (make_cuda_device()), which is borrowed
// unless it is `owned`. The stream is urgent: NCCL's few blocks get the first multiprocessors that
// become free.
std::unique_ptr<NcclQueue> make_cuda_queue(Device& device, std::unique_ptr<Device> owned = nullptr);

}  // namespace gxp

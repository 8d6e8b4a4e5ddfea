// What engine nccl needs of CUDA: one GPU and one of its streams. With CUDA it is
// make_cuda_queue(); without, the engine's own logic can be tested.
//   Threads  one at a time, any; the GPU becomes the calling thread's.
//   Errors   kDevice.
#pragma once

#include <memory>

#include "lib/base/error.h"
#include "lib/collective/engine/nccl/nccl_library.h"
#include "lib/device/device.h"
#include "lib/device/memory.h"

namespace gxp {

class NcclQueue {
 public:
  virtual ~NcclQueue() = default;
  [[nodiscard]] virtual Device& device() = 0;
  // Where NCCL is to queue its work.
  [[nodiscard]] virtual NcclStream stream() = 0;
  // Queues a copy between host and GPU, or on either.
  virtual void copy(Memory to, ConstMemory from) = 0;
  // Whether all that was queued is done.
  [[nodiscard]] virtual bool done() = 0;
};

// Only in builds with GXP_CUDA=ON: GPU number `local_rank` of this process.
std::unique_ptr<NcclQueue> make_cuda_queue(int local_rank);

}  // namespace gxp

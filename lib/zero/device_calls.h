// Collective calls on memory of a device.
#pragma once

#include "lib/collective/communicator.h"
#include "lib/device/device.h"

namespace gxp {

// The communicator's functions of the same names, for memory of a device. Where the communicator's
// engine reaches that memory, it works there; else a call goes through pinned memory of the host,
// which is as large as the largest call so far.
//   Order    after what the stream was given: each call is a Work of the stream, or the caller's
//            while nothing is queued. When it returns, the device holds the result.
//   Cost     two copies over the link to the device, before and after the call. They are not cut
//            into pieces: the calls of a step are buckets and wraps, several of which follow each
//            other, and a piece of an all-gather is not one part of memory.
class DeviceCalls {
 public:
  // Both outlive it.
  DeviceCalls(Device& device, Stream& stream) : device_(device), stream_(stream) {}

  void run(Communicator& communicator, const Call& call, ConstMemory input, Memory output);
  void all_reduce(Communicator& communicator, Memory data, DType dtype, ReduceOp op);
  void reduce_scatter(Communicator& communicator, Memory data, DType dtype, ReduceOp op);
  void all_gather(Communicator& communicator, Memory data, DType dtype);

 private:
  void run_in_place(Communicator& communicator, const Call& call, Memory data);

  Device& device_;
  Stream& stream_;
  Buffer pinned_;
};

}  // namespace gxp

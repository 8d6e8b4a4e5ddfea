// A compressed all-reduce (compressed_sum.h) of one buffer that owns its memory: what the last call
// could not send, which the next call adds.
//   Memory  scratch and state are counted as kCommunication, allocated by the constructor.
#pragma once

#include "lib/collective/compress/compressed_sum.h"
#include "lib/device/device.h"

namespace gxp {

struct CompressionOptions {
  bool error_feedback = true;
  size_t piece_bytes = 4 << 20;  // of the buffer, in flight at a time: unit of pipelining
};

class CompressedAllReduce {
 public:
  // For buffers of `count` elements of f32, f16 or bf16; kUnavailable for other types. `codec`,
  // `groups` and `device` outlive the object; objects may share them. All ranks pass the same.
  CompressedAllReduce(const Codec& codec, const CompressionOptions& options, size_t count,
                      DType dtype, HostGroups& groups, Device& device)
      : sum_(codec, {.count = count, .piece_count = options.piece_bytes / size_of(dtype)}, dtype,
             groups) {
    if (groups.place().hosts == 1) return;  // nothing is encoded
    slots_ = device.allocate(sum_.slots_bytes(), MemoryKind::kCommunication);
    if (options.error_feedback)
      residual_ =
          device.allocate(sum_.residual_count() * sizeof(float), MemoryKind::kCommunication);
  }

  // In place, as Communicator::all_reduce; kSum or kAvg over all ranks.
  void all_reduce(Memory data, ReduceOp op) {
    sum_.run(data, op, {slots_.memory(), reinterpret_cast<float*>(residual_.memory().data)});
  }

 private:
  CompressedSum sum_;
  Buffer slots_;
  Buffer residual_;  // f32; empty without error feedback
};

}  // namespace gxp

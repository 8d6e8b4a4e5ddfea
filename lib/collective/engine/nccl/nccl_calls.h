// gxp's calls as NCCL's, started on a stream: chunks of unequal size and operations that NCCL lacks
// are groups of its calls.
#pragma once

#include <functional>
#include <span>

#include "lib/collective/engine/engine.h"
#include "lib/collective/engine/nccl/nccl_library.h"

namespace gxp {

// The target of NCCL's calls, for one rank of a group.
struct NcclTarget {
  const NcclLibrary& library;
  NcclComm* comm;
  NcclStream stream;
  int rank = 0;
  int world_size = 1;
  std::function<void(Memory to, ConstMemory from)> copy;  // queues a copy on the stream
};

// Starts a call on GPU memory; not a barrier, and not an all-to-all in place. Throws as
// NcclLibrary::check(); kUsage as check_nccl_reduction().
void start_nccl_call(const NcclTarget& target, const Call& call, ConstMemory input, Memory output);
// All at the same time.
void start_nccl_messages(const NcclTarget& target, std::span<const PeerMessage> messages);
// A call that ends when all ranks have come to it; `word` is a byte of the GPU.
void start_nccl_barrier(const NcclTarget& target, Memory word);

}  // namespace gxp

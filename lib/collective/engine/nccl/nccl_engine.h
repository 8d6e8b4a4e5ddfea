// Engine over NVIDIA's NCCL, for ranks with a GPU each: local rank i has GPU i.
//   Memory   GPU memory is used where it is. Host memory is copied to the GPU and back.
//   Calls    gxp waits for each on the host, so that a deadline holds; NCCL's communicators are
//            nonblocking for the same reason. Chunks of unequal size and operations that NCCL lacks
//            are groups of its calls.
//   Bits     NCCL's order of adding; kAvg and premultiplied sums as NCCL rounds them. NCCL has no
//            bitwise and logical reductions (kUsage), and no premultiplied sums of integers by less
//            than 1 (kUsage).
//   Errors   kPeer at the deadline, or as NCCL tells of other ranks; then the communicator is
//            aborted, which ends what runs on the GPU. kDevice: this rank's GPU.
//   Counters none; NCCL does not say what it moves.
#pragma once

#include <memory>
#include <string>

#include "lib/base/deadline.h"
#include "lib/collective/engine/engine.h"
#include "lib/collective/engine/nccl/nccl_library.h"
#include "lib/collective/engine/nccl/nccl_queue.h"
#include "lib/net/store/store.h"
#include "lib/transport/context.h"

namespace gxp {

// The name that NCCL's ranks meet by: rank 0 makes it and tells the others through the store.
NcclUniqueId exchange_unique_id(const NcclLibrary& library, Store& store, Deadline deadline);

// All ranks of the store; all call it. `device`, which gives allocate()'s memory, and the store
// outlive the engine; the job's failure ends its waits.
std::unique_ptr<Engine> make_nccl_engine(const NcclLibrary& library,
                                         std::unique_ptr<NcclQueue> queue, Device& device,
                                         const TransportContext& ranks);

}  // namespace gxp

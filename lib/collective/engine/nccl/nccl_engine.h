// Engine over NVIDIA's NCCL, for ranks with a GPU each.
//   Memory   GPU memory is used where it is. Host memory is copied to the GPU and back.
//   Order    enqueue() puts a call into the order of the caller's stream, by events: no wait for
//            the GPU on the host. NCCL's work of all groups of a rank has one stream of its own, so
//            ranks that queue in one order never wait for each other in a circle.
//   Copies   keep_memory() registers memory, so that NCCL works on it without buffers of its own:
//            as a symmetric window where the version has them and all ranks have as many bytes of
//            shareable memory, else as a buffer. The engine's own scratch is ncclMemAlloc()'s.
//   Versions nccl_versions.h has the table of what needs which.
//   Waits    NCCL knows no deadlines. Its communicators are nonblocking, so a wait in it can be
//            given up; CallWatch times what is on the GPU. When a call fails, a rank dies or
//            abort() is called, all groups' communicators are aborted, which ends their kernels.
//   Bits     NCCL's order of adding; kAvg and premultiplied sums as NCCL rounds them. NCCL has no
//            bitwise and logical reductions (kUsage), and no premultiplied sums of integers by less
//            than 1 (kUsage).
//   Errors   kPeer at the deadline, or if NCCL reports a failure of other ranks; kDevice: this
//            rank's GPU. With a recorder the verdict names the rank that has not come to the call
//            (diagnosis.h).
//   Counters none; NCCL does not report its traffic.
#pragma once

#include <memory>
#include <string>

#include "lib/base/deadline.h"
#include "lib/collective/engine/engine.h"
#include "lib/collective/engine/nccl/nccl_library.h"
#include "lib/collective/engine/nccl/nccl_queue.h"
#include "lib/collective/engine/nccl/nccl_versions.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/net/store/store.h"
#include "lib/transport/context.h"

namespace gxp {

// The engine's environment besides its ranks; borrowed, except the queue.
struct NcclParts {
  const NcclLibrary& library;
  std::unique_ptr<NcclQueue> queue;
  Device& device;                      // of allocate()
  FlightRecorder* recorder = nullptr;  // that the engine writes; null: none
  CtaLimits ctas{};
};

// All ranks of the store; all call it. The store outlives the engine; the job's failure ends its
// waits. kUnavailable: ranks share a GPU, or have different versions.
std::unique_ptr<Engine> make_nccl_engine(NcclParts parts, const TransportContext& ranks);

}  // namespace gxp

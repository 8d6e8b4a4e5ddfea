// A call of NCCL's between two marks of the queue.
#pragma once

#include <memory>

#include "lib/collective/algorithm/call.h"
#include "lib/collective/engine/nccl/nccl_communicator.h"
#include "lib/collective/engine/nccl/nccl_queue.h"
#include "lib/collective/engine/queued_call.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/transport/abort_flag.h"

namespace gxp {

class NcclQueuedCall final : public QueuedCall {
 public:
  struct Parts {
    Call call;
    uint8_t group = 0;
    std::shared_ptr<NcclCommunicator> comm;  // owners: the engine and its queued calls
    std::shared_ptr<AbortFlag> aborted;      // owners: the engines and the store's alarm
    FlightRecorder* recorder = nullptr;      // learns of the call when the GPU comes to it
  };
  NcclQueuedCall(Parts parts, std::unique_ptr<NcclMark> begin, std::unique_ptr<NcclMark> end)
      : parts_(std::move(parts)), begin_(std::move(begin)), end_(std::move(end)) {}
  [[nodiscard]] Progress look() override;

 private:
  Parts parts_;
  std::unique_ptr<NcclMark> begin_;
  std::unique_ptr<NcclMark> end_;
  bool has_begun_ = false;
};

}  // namespace gxp

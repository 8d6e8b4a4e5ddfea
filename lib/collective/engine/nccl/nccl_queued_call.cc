#include "lib/collective/engine/nccl/nccl_queued_call.h"

namespace gxp {

QueuedCall::Progress NcclQueuedCall::look() {
  // A call that has ended by an abort is not done.
  parts_.aborted->check();
  static_cast<void>(parts_.comm->is_ready());
  if (!has_begun_) {
    if (!begin_->passed()) return Progress::kWaits;
    has_begun_ = true;
    if (parts_.recorder != nullptr)
      parts_.recorder->enter(parts_.call, "nccl", parts_.group, Deadline::Clock::now());
  }
  if (!end_->passed()) return Progress::kRuns;
  parts_.aborted->check();
  if (parts_.recorder != nullptr) parts_.recorder->done();
  return Progress::kDone;
}

}  // namespace gxp

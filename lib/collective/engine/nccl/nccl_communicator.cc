#include "lib/collective/engine/nccl/nccl_communicator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

void NcclCommunicator::use(std::string_view act,
                           const std::function<NcclResult(NcclComm*)>& start) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) throw Error(ErrorKind::kPeer, reason_);
  library_.check(start(comm_), act);
}

bool NcclCommunicator::is_ready() {
  NcclResult state = NcclResult::kSuccess;
  use("query NCCL's progress", [&](NcclComm* comm) {
    const NcclResult asked = library_.functions().get_async_error(comm, &state);
    return asked == NcclResult::kSuccess ? state : asked;
  });
  return state == NcclResult::kSuccess;
}

void NcclCommunicator::destroy() {
  const std::lock_guard lock(mutex_);
  if (comm_ != nullptr) library_.functions().destroy(comm_);
  comm_ = nullptr;
  reason_ = "NCCL's communicator was destroyed";
}

void NcclCommunicator::abort(std::string_view reason) noexcept {
  std::unique_lock lock(mutex_, std::defer_lock);
  const Deadline patience = Deadline::after(std::chrono::seconds(1));
  while (!lock.try_lock() && !patience.expired())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  NcclComm* const comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  reason_ = reason;
  library_.functions().abort(comm);
}

std::shared_ptr<NcclCommunicator> NcclCommunicators::add(const NcclLibrary& library,
                                                         NcclComm* comm) {
  auto made = std::make_shared<NcclCommunicator>(library, comm);
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const auto& one) { return one.expired(); });
  all_.push_back(made);
  return made;
}

void NcclCommunicators::abort(std::string_view reason) noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& one : all_)
    if (const auto comm = one.lock()) comm->abort(reason);
}

}  // namespace gxp

// One of NCCL's communicators, which ends once: in good order, or by an abort from any thread,
// which also ends the kernels that wait for other ranks on the GPU.
//   Threads  one uses it at a time; abort() any. NCCL's communicator is nonblocking, so each use is
//            short, and an abort waits for it; but not longer than a second, because a use that
//            hangs is what NCCL's abort is for.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/engine/nccl/nccl_library.h"

namespace gxp {

class NcclCommunicator {
 public:
  // Takes the communicator, which may still be in progress.
  NcclCommunicator(const NcclLibrary& library, NcclComm* comm) : library_(library), comm_(comm) {}
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  // Aborts it, unless it was destroyed.
  ~NcclCommunicator() { abort("its owner has ended"); }

  // Calls `start`, which `act` names in errors. kPeer: the communicator was aborted, with the
  // reason; else as NcclLibrary::check().
  void use(std::string_view act, const std::function<NcclResult(NcclComm*)>& start);
  // Whether NCCL has queued all started calls; throws NCCL's error.
  [[nodiscard]] bool is_ready();
  // After ncclCommFinalize() is ready.
  void destroy();
  void abort(std::string_view reason) noexcept;

 private:
  NcclLibrary library_;
  std::mutex mutex_;  // guards the rest
  NcclComm* comm_;
  std::string reason_;
};

// The communicators of all groups of a rank, to be aborted together.
//   Threads  any.
class NcclCommunicators {
 public:
  std::shared_ptr<NcclCommunicator> add(const NcclLibrary& library, NcclComm* comm);
  void abort(std::string_view reason) noexcept;

 private:
  std::mutex mutex_;  // guards the list
  std::vector<std::weak_ptr<NcclCommunicator>> all_;
};

}  // namespace gxp

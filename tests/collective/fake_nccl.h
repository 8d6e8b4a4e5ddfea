// What tests make the library do that stands for NCCL (fake_nccl.cc).
#pragma once

#include <functional>

#include "lib/base/shared_library.h"
#include "lib/collective/engine/nccl/nccl_library.h"

namespace gxp::fake_nccl {

struct Controls {
  // Queues on a stream what is tried until it is true; empty: calls are done on the host.
  std::function<void(NcclStream stream, std::function<bool()> attempt)> enqueue{};
  // Called when a rank's work number `work` begins on a stream.
  std::function<void(int rank, int work)> on_begin{};
  // Of ncclMemAlloc() and ncclMemFree(); empty: the host's.
  std::function<void*(size_t bytes)> allocate{};
  std::function<void(void* data)> free{};
  // Memory becomes a "buffer" or a "window" (1), or is one no more (-1).
  std::function<void(const char* kind, int change)> on_register{};
  // What a communicator is made with.
  std::function<void(const NcclConfig& config)> on_config{};
  // From this work of a communicator on, ncclCommGetAsyncError() tells of a remote failure; -1:
  // never.
  int fail_at = -1;
};

// Until its end; no communicator is in use at either end.
class ControlledNccl {
 public:
  ControlledNccl(const char* file, const Controls& controls) {
    SharedLibrary("NCCL", file).find("fakeNcclSetControls", set_);
    set_(&controls);
  }
  ControlledNccl(const ControlledNccl&) = delete;
  ControlledNccl& operator=(const ControlledNccl&) = delete;
  ~ControlledNccl() {
    const Controls none;
    set_(&none);
  }

 private:
  void (*set_)(const Controls*) = nullptr;
};

}  // namespace gxp::fake_nccl

// Where the buffers of a benchmark are, and where its calls work.
#pragma once

#include <string>

#include "kernels/device_folds.h"
#include "lib/device/device.h"

namespace gxp {

// The location of a rank's buffers.
struct BenchDevice {
  Device& device;
  DeviceFolds* folds = nullptr;  // of its memory; null: it is the host's
  int number = 0;                // of the GPU on its host
};

// The memory that calls work on.
enum class CallsOn {
  kHost,    // the host's, where the buffers are
  kDevice,  // the GPUs', where the buffers are
  kPinned,  // pinned host memory: GPUs' buffers are copied there before a call and back after it
};

// The same on all ranks.
struct BenchMedium {
  CallsOn collectives = CallsOn::kHost;
  CallsOn messages = CallsOn::kHost;  // of sends and receives
  std::string collectives_reason{};   // of kPinned
  std::string messages_reason{};
  // "the GPUs' memory", "pinned host memory: rank 0: ..."
  [[nodiscard]] std::string of_collectives() const;
  [[nodiscard]] std::string of_messages() const;
};

}  // namespace gxp

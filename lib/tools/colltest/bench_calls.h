// How the calls of a benchmark reach its buffers.
#pragma once

#include <string>

#include "kernels/device_folds.h"
#include "lib/collective/communicator.h"
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

// All ranks make one, and the same calls on it.
class BenchCalls {
 public:
  // Joins the device; both outlive it. Throws kDevice.
  BenchCalls(Communicator& communicator, const BenchDevice& place);

  [[nodiscard]] const BenchMedium& medium() const { return medium_; }
  // As Communicator::run(): when it returns, the output is complete where the buffers are. Pinned
  // memory grows with the largest call so far.
  void run(const Call& call, ConstMemory input, Memory output);
  // Sends the input to the next rank of a ring, and receives the output from the one before; for a
  // rank that is alone, a copy.
  void pass_on(ConstMemory input, Memory output);

 private:
  void exchange(ConstMemory input, Memory output);
  // Calls work(input, output) on the copies in pinned memory.
  template <class Work>
  void through_pinned(ConstMemory input, Memory output, const Work& work);

  Communicator& communicator_;
  Device& device_;
  JoinedDevice joined_;
  BenchMedium medium_;
  Buffer input_;  // pinned
  Buffer output_;
};

}  // namespace gxp

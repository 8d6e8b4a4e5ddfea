// How the calls of a benchmark reach its buffers.
#pragma once

#include "lib/collective/algorithm/call.h"
#include "lib/collective/joined_device.h"
#include "lib/tools/colltest/bench_device.h"

namespace gxp {

class Communicator;

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

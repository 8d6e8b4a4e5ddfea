// The collectives of a step whose parts travel between hosts in a codec: sums of gradients
// (compressed_sum.h), of which this knows the elements whose residuals this rank holds, and gathers
// of parameters (compressed_gather.h). Calls on a GPU's memory work on copies in pinned memory of
// the host, made before a call and brought back behind it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lib/collective/compress/host_groups.h"
#include "lib/program/run_plan.h"
#include "lib/tensor/tensor.h"
#include "lib/zero/device_calls.h"

namespace gxp {

// Elements of the flat gradients whose residuals lie side by side in StepProgram::residuals.
struct ResidualRange {
  Range flat;
  size_t at = 0;
};

class CompressedCalls {
 public:
  // [collective] Nothing, where the plan has no codec. All arguments outlive it. Allocates the slots
  // of its calls. Errors: kUnavailable: hosts have unequal numbers of ranks.
  CompressedCalls(const RunPlan& plan, DeviceCalls& calls, Device& device, Stream& stream);

  // Return the function that carries out the collective of an operation in a codec, as
  // DeviceCalls::run() does of others. `residuals`: the whole buffer.
  std::function<void()> bind_sum(const Op& op, const Tensor& data, const Tensor& residuals);
  std::function<void()> bind_gather(const Op& op, const Tensor& whole, const Tensor& shard);

  // This rank's, and the number of its host. Hosts have each element once.
  [[nodiscard]] const std::vector<ResidualRange>& residuals() const { return residuals_; }
  [[nodiscard]] int host() const { return host_; }

 private:
  void add_residuals(const RunPlan& plan, const Op& op, int rank);
  [[nodiscard]] Memory on_host(const Memory& memory, size_t before) const;
  void copy(const Memory& to, const ConstMemory& from) const;
  void finish_copies() const;

  std::optional<HostGroups> groups_;  // of the one group in which operations are compressed
  Buffer slots_;                      // of all operations, which do not overlap
  Stream* stream_ = nullptr;          // of a GPU, where calls work on copies in pinned memory:
  Buffer pinned_;                     // those of the operation with the largest
  std::vector<ResidualRange> residuals_;
  int host_ = 0;
};

}  // namespace gxp

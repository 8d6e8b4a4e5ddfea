// The sums of gradients whose parts travel between hosts in a codec (compressed_sum.h): which
// operations those are, and which elements' residuals this rank holds.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lib/collective/compress/compressed_sum.h"
#include "lib/program/run_plan.h"
#include "lib/tensor/tensor.h"
#include "lib/zero/device_calls.h"

namespace gxp {

// Elements of the flat gradients whose residuals lie side by side in StepProgram::residuals.
struct ResidualRange {
  Range flat;
  size_t at = 0;
};

class CompressedGradients {
 public:
  // [collective] Nothing, where the plan has no codec. All arguments outlive it. Allocates the slots
  // of its calls. Errors: kUnavailable: the device is a GPU, or hosts have unequal numbers of ranks.
  CompressedGradients(const RunPlan& plan, DeviceCalls& calls, Device& device);

  // Returns the function that carries out the collective of a compressed operation on `data`, as
  // DeviceCalls::run() does of others. `residuals`: the whole buffer.
  std::function<void()> bind(const Op& op, const Tensor& data, const Tensor& residuals);

  // This rank's, and the number of its host. Hosts have each element once.
  [[nodiscard]] const std::vector<ResidualRange>& residuals() const { return residuals_; }
  [[nodiscard]] HostPlace place() const { return groups_ ? groups_->place() : HostPlace{}; }
  [[nodiscard]] int host() const { return host_; }

 private:
  void add_residuals(const RunPlan& plan, const Op& op, int rank);

  const Codec* codec_ = nullptr;
  std::optional<HostGroups> groups_;  // of the group in which operations are compressed
  Buffer slots_;                      // of all operations, which do not overlap
  std::vector<ResidualRange> residuals_;
  int host_ = 0;
};

}  // namespace gxp

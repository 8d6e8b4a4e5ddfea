// The plan of a gxp train run, without data, ranks or a device. The trainer executes the same plan,
// so its predictions hold for the run. Pure.
#pragma once

#include <optional>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/config/run_config.h"
#include "lib/config/strategy.h"
#include "lib/program/build.h"
#include "lib/shard/layout.h"

namespace gxp {

// The run's model: its number types, and which of its tensors are frozen. Throws kConfig as
// freeze() does, and for widths that train.matmul cannot have.
Architecture run_architecture(const RunConfig& config);

// Whether offload.parameters may be anything but "none".
bool can_offload_parameters(const ParallelConfig& parallel, int world_size);

// Whether the run has no codec, or shard groups that it can be used with: those of all ranks, or of
// ranks of one host.
bool can_compress(const RunConfig& config, const RanksOnHosts& ranks);

// The sizes of one step of the run. Throws kConfig where ranks cannot be cut into its groups.
StepShape step_shape(const RunConfig& config, const RanksOnHosts& ranks);

// parallel.wrap of it, for make_layout(). Throws kConfig as first_units_of_wraps() does.
std::vector<int> first_units(const RunConfig& config, const Architecture& architecture);

struct RunPlan {
  Architecture architecture;
  ParameterLayout layout;
  Strategy strategy;
  StepShape shape;
  BuiltStep step;
  std::optional<StepProgram> validation;  // with validation data: run between steps
  bool attends_in_any_order = false;      // cuDNN's backward, as train.deterministic "off" allows
};

// kConfig: a model or strategy that there is not.
RunPlan plan_run(const RunConfig& config, const RanksOnHosts& ranks);

// Of a run that makes no steps: instead of a step, a forward pass over one position, whose memory
// has nothing of gradients and optimizers. Errors: the same.
RunPlan plan_evaluation(const RunConfig& config, const RanksOnHosts& ranks);

}  // namespace gxp

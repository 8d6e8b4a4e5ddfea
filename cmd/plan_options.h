// The options of a TrainPlan, which gxp memcalc MODEL and gxp shard-plan MODEL share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/replay/plan_search.h"
#include "lib/tools/planner/train_plan.h"

namespace CLI {
class App;
}

namespace gxp {

// The heading of options that go with a model, not with a run file.
inline constexpr const char* kWithModel = "With a MODEL";
inline constexpr const char* kWithRunFile = "With a run file";

// Where plans_that_fit() finds nothing.
inline constexpr const char* kNothingFits =
    "no other stage, recomputation, micro-batch, parallelism or offload fits; use a smaller model "
    "or shorter sequences";

// --shard, --micro-batch, --accumulate, --tensor-parallel, --pipeline-parallel, --interleave,
// --no-sequence-parallel, --context-parallel, --recompute, --offload; and --software.
void add_plan_options(CLI::App& app, TrainPlan& plan, std::string& software);

// The names of the options that `add` gives a command.
std::vector<std::string> option_names(const std::function<void(CLI::App&)>& add);
// Those of a TrainPlan.
std::vector<std::string> plan_option_names();

// The changes to a plan, as options: "--recompute full --micro-batch 2".
std::string to_options(const std::vector<ChangedSetting>& changes);

}  // namespace gxp

// The options of a TrainPlan, which gxp memcalc MODEL and gxp shard-plan MODEL share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/estimate/plan_search.h"
#include "lib/estimate/train_plan.h"

namespace CLI {
class App;
}

namespace gxp {

// --shard, --micro-batch, --accumulate, --tensor-parallel, --pipeline-parallel, --interleave,
// --no-sequence-parallel, --context-parallel, --recompute, --offload; and --software.
void add_plan_options(CLI::App& app, TrainPlan& plan, std::string& software);

// The names of these options.
std::span<const std::string_view> plan_option_names();

// What was changed in a plan, as options: "--recompute full --micro-batch 2".
std::string to_options(const std::vector<ChangedSetting>& changes);

}  // namespace gxp

#include "cmd/plan_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cmd/choice_option.h"
#include "cmd/options.h"

namespace gxp {

void add_plan_options(CLI::App& app, TrainPlan& plan, std::string& software) {
  app.add_option("--software", software, "With a MODEL: the software that trains it")
      ->type_name(names_of(softwares()))
      ->capture_default_str();
  add_number_option(app, "--micro-batch", plan.micro_batch, 1, 1 << 16,
                    "With a MODEL: sequences of a micro-batch (1)");
  add_number_option(app, "--accumulate", plan.accumulation, 1, 1 << 20,
                    "With a MODEL: micro-batches of one step");
  add_number_option(app, "--shard", plan.shard, 1, kMostGpus,
                    "Hybrid sharding: data-parallel ranks of one shard group (all)");
  add_number_option(app, "--tensor-parallel", plan.tensor, 1, 1 << 10,
                    "With a MODEL: GPUs that share each layer (1)");
  add_number_option(app, "--pipeline-parallel", plan.pipeline, 1, 1 << 10,
                    "With a MODEL: stages that the layers are cut into (1)");
  add_number_option(app, "--interleave", plan.interleave, 1, 1 << 10,
                    "With a MODEL: parts of the model on each stage (1)");
  app.add_flag("--no-sequence-parallel{false}", plan.sequence_parallel,
               "With a MODEL: tensor parallelism leaves norms and residuals whole");
  add_number_option(app, "--context-parallel", plan.context, 1, 1 << 10,
                    "With a MODEL: GPUs that share each sequence (1)");
  add_choice_option(app, "--recompute", plan.recompute, kRecomputeNames,
                    "With a MODEL: activations that are recomputed");
  add_choice_option(app, "--offload", plan.offload, kOffloadNames,
                    "With a MODEL: states in host memory");
}

std::vector<std::string> option_names(const std::function<void(CLI::App&)>& add) {
  CLI::App app;
  app.set_help_flag();  // none
  add(app);
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
  return names;
}

std::vector<std::string> plan_option_names() {
  TrainPlan plan;
  std::string software;
  return option_names([&](CLI::App& app) { add_plan_options(app, plan, software); });
}

std::string to_options(const std::vector<ChangedSetting>& changes) {
  std::string text;
  for (const ChangedSetting& change : changes) {
    text += text.empty() ? "" : " ";
    text += change.value.empty() ? fmt::format("no --{}", change.name)
                                 : fmt::format("--{} {}", change.name, change.value);
  }
  return text;
}

}  // namespace gxp

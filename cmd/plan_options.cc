#include "cmd/plan_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cmd/choice_option.h"
#include "cmd/options.h"

namespace gxp {

void add_plan_options(CLI::App& app, TrainPlan& plan, std::string& software) {
  add_under(app, kWithModel, [&] {
    app.add_option("--software", software, "Training software whose memory and time are predicted")
        ->type_name(names_of(softwares()))
        ->capture_default_str();
    add_number_option(app, "--micro-batch", plan.micro_batch, 1, 1 << 16,
                      "Sequences per micro-batch");
    CLI::Option* accumulate = add_number_option(app, "--accumulate", plan.accumulation, 1, 1 << 20,
                                                "Micro-batches per step");
    if (plan.accumulation == 0) accumulate->default_str("as many as fill the pipeline");
    add_number_option(app, "--shard", plan.shard, 1, kMostGpus,
                      "Data-parallel ranks per shard group (hybrid sharding)")
        ->default_str("all");
    add_number_option(app, "--tensor-parallel", plan.tensor, 1, 1 << 10, "Tensor-parallel size");
    add_number_option(app, "--pipeline-parallel", plan.pipeline, 1, 1 << 10, "Pipeline stages");
    add_number_option(app, "--interleave", plan.interleave, 1, 1 << 10,
                      "Model chunks per pipeline stage (interleaved schedule)");
    app.add_flag("--no-sequence-parallel{false}", plan.sequence_parallel,
                 "Turn off sequence parallelism");
    add_number_option(app, "--context-parallel", plan.context, 1, 1 << 10, "Context-parallel size");
    add_choice_option(app, "--recompute", plan.recompute, kRecomputeNames,
                      "Activations to recompute in the backward pass");
    add_choice_option(app, "--offload", plan.offload, kOffloadNames,
                      "State kept in host memory between steps");
  });
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

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cmd/choice_option.h"
#include "cmd/options.h"
#include "cmd/shard_plan/model_plan.h"
#include "lib/base/error.h"
#include "lib/estimate/model_states.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 18> kNames = {"--cluster",
                                                     "--gpu",
                                                     "--software",
                                                     "--gpus",
                                                     "--sequence",
                                                     "--global-batch",
                                                     "--micro-batch",
                                                     "--accumulate",
                                                     "--stage",
                                                     "--shard",
                                                     "--tensor-parallel",
                                                     "--interleave",
                                                     "--pipeline-parallel",
                                                     "--context-parallel",
                                                     "--precision",
                                                     "--no-sequence-parallel",
                                                     "--recompute",
                                                     "--offload"};

constexpr std::array<std::string_view, 5> kOfBoth = {"config", "--limit", "--search", "--format",
                                                     "--help"};

void add_parallel_options(CLI::App& app, TrainPlan& plan) {
  add_number_option(app, "--stage", plan.stage, 0, kMostStage, "With a MODEL: ZeRO stage (3)");
  add_number_option(app, "--shard", plan.shard, 1, kMostGpus,
                    "With a MODEL: data-parallel ranks that share one copy (all)");
  add_number_option(app, "--tensor-parallel", plan.tensor, 1, 1 << 10,
                    "With a MODEL: GPUs that share each layer (1)");
  add_number_option(app, "--pipeline-parallel", plan.pipeline, 1, 1 << 10,
                    "With a MODEL: stages that the layers are cut into (1)");
  add_number_option(app, "--interleave", plan.interleave, 1, 1 << 10,
                    "With a MODEL: pieces of the model on each stage (1)");
  app.add_flag("--no-sequence-parallel{false}", plan.sequence_parallel,
               "With a MODEL: tensor parallelism leaves norms and residuals whole");
  add_number_option(app, "--context-parallel", plan.context, 1, 1 << 10,
                    "With a MODEL: GPUs that share each sequence (1)");
  add_choice_option(app, "--precision", plan.format, kNumberFormatNames,
                    "With a MODEL: format of the products");
  add_choice_option(app, "--recompute", plan.recompute, kRecomputeNames,
                    "With a MODEL: activations that are computed again");
  add_choice_option(app, "--offload", plan.offload, kOffloadNames,
                    "With a MODEL: states that lie in main memory");
}

}  // namespace

void check_plan_options(const CLI::App& app, const std::string& subject, bool is_run) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(kOfBoth, name) != kOfBoth.end()) continue;
    const bool of_model = std::ranges::find(kNames, name) != kNames.end();
    if (of_model == is_run)
      fail(ErrorKind::kUsage, "shard-plan {}: {} goes with a {}; leave it out", subject, name,
           is_run ? "MODEL, not a run file" : "run file, RUN.toml");
  }
}

void add_model_plan_options(CLI::App& app, ModelPlanOptions& options) {
  app.add_option(
         "--cluster", options.cluster,
         "With a MODEL: the hardware, of " + names_of(hardware_table()) + "; or a cluster file")
      ->type_name("NAME");
  app.add_option("--gpu", options.gpu, "With a cluster file: the GPUs in it")
      ->type_name(names_of(gpus()));
  app.add_option("--software", options.software, "With a MODEL: what trains it")
      ->type_name(names_of(softwares()))
      ->capture_default_str();
  add_number_option(app, "--gpus", options.gpus, 1, kMostGpus,
                    "With a MODEL: how many GPUs; all of a cluster file, else 8");
  add_number_option(app, "--sequence", options.sequence, 1, 1 << 20,
                    "With a MODEL: tokens of a sequence; the model's own, at most 8192");
  add_number_option(app, "--micro-batch", options.micro_batch, 1, 1 << 16,
                    "With a MODEL: sequences of a micro-batch (1)");
  add_number_option(app, "--accumulate", options.accumulation, 1, 1 << 20,
                    "With a MODEL: micro-batches of a step (1)");
  add_number_option(app, "--global-batch", options.global_batch, 1, 1 << 24,
                    "With a MODEL: sequences of a step, in place of --accumulate");
  add_parallel_options(app, options.plan);
  app.add_option("--limit", options.limit,
                 "Memory of a GPU; a MODEL's own, of a run train.device_memory_bytes")
      ->type_name("SIZE");
  app.add_flag("--search", options.search,
               "Search all plans of that step, and show the best by memory and time");
}

}  // namespace gxp

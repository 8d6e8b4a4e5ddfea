
#include <CLI/CLI.hpp>

#include "cmd/choice_option.h"
#include "cmd/options.h"
#include "cmd/plan_options.h"
#include "cmd/shard_plan/model_plan.h"
#include "lib/base/error.h"
#include "lib/tools/planner/model_states.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 5> kOfBoth = {"RUN.toml|MODEL", "--limit", "--search",
                                                     "--format", "--help"};

}  // namespace

void check_plan_options(const CLI::App& app, const std::string& subject, bool is_run) {
  ModelPlanOptions unused;
  const auto of_model =
      option_names([&](CLI::App& other) { add_model_plan_options(other, unused); });
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(kOfBoth, name) != kOfBoth.end()) continue;
    const bool is_of_model = std::ranges::find(of_model, name) != of_model.end();
    if (is_of_model == is_run)
      fail(ErrorKind::kUsage, "shard-plan {}: {} is for a {}; leave it out", subject, name,
           is_run ? "MODEL, not a run file" : "run file, RUN.toml");
  }
}

void add_model_plan_options(CLI::App& app, ModelPlanOptions& options) {
  add_under(app, kWithModel, [&] {
    app.add_option("--cluster", options.cluster,
                   "Hardware: a cluster file, or one of " + names_of(hardware_table()))
        ->type_name("NAME");
    app.add_option("--gpu", options.gpu, "GPU of a cluster file")->type_name(names_of(gpus()));
    add_number_option(app, "--gpus", options.gpus, 1, kMostGpus, "Number of GPUs")
        ->default_str("all of a cluster file, else 8");
    add_number_option(app, "--sequence", options.sequence, 1, 1 << 20, "Sequence length")
        ->default_str("the model's own, at most 8192");
    add_number_option(app, "--global-batch", options.global_batch, 1, 1 << 24,
                      "Sequences per step, instead of --accumulate");
    add_number_option(app, "--stage", options.plan.stage, 0, kMostStage, "ZeRO stage");
    add_choice_option(app, "--precision", options.plan.format, kNumberFormatNames,
                      "Number format of matrix products");
  });
  add_plan_options(app, options.plan, options.software);
  app.add_option("--limit", options.limit, "Memory of a GPU")
      ->type_name("SIZE")
      ->default_str("the hardware's, or train.device_memory_bytes");
  app.add_flag("--search", options.search,
               "Find the best plans by memory and by time. All have the same sequences per step");
}

}  // namespace gxp

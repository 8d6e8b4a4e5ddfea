// gxp shard-plan: what gxp train would do in a step of a run: who owns what, what moves when, how
// long it takes; or what a model would take on published hardware. Starts no ranks.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/plan_options.h"
#include "cmd/shard_plan/run.h"

namespace gxp {
namespace {

int run(const CLI::App& app, const ShardPlanOptions& options) {
  const bool is_run = options.config_path.ends_with(".toml");
  check_plan_options(app, options.config_path, is_run);
  return is_run ? plan_run_file(options)
                : plan_model(options.config_path, options.model, options.format);
}

void add_ranks(CLI::App& app, ShardPlanOptions& options) {
  add_number_option(app, "--nproc", options.ranks.nproc, 1, kMostPlannedRanks, "Ranks per host");
  add_number_option(app, "--nnodes", options.ranks.nnodes, 1, kMostPlannedRanks, "Number of hosts");
  add_number_option(app, "--rank", options.rank, 0, kMostPlannedRanks - 1,
                    "Rank whose traffic and memory are shown");
}

void add_speeds(CLI::App& app, ShardPlanOptions& options) {
  CLI::Option* measure =
      app.add_flag("--measure", options.measure,
                   "Time the operations on this host, in a few steps of the model's first blocks");
  app.add_option("--gflops", options.gflops, "Matrix-product GFLOP/s of a rank")
      ->check(check_positive)
      ->excludes(measure)
      ->type_name("RATE")
      ->default_str("measured on this host");
  app.add_option("--time-by-class", options.gpu_of_classes,
                 "Predict the time of each class of kernels on this GPU instead")
      ->excludes(measure)
      ->excludes("--gflops")
      ->type_name(names_of(gpus()));
  app.add_option("--memory-gb-per-s", options.memory_gb_per_s,
                 "Memory bandwidth of a rank in all other operations, in GB/s")
      ->check(check_positive)
      ->excludes(measure)
      ->type_name("RATE")
      ->capture_default_str();
  app.add_option("--file-gb-per-s", options.file_gb_per_s,
                 "Bandwidth of a rank's offload files, in GB/s")
      ->check(check_positive)
      ->type_name("RATE")
      ->capture_default_str();
}

void add_run_options(CLI::App& app, ShardPlanOptions& options) {
  add_set_option(app, options.sets);
  add_ranks(app, options);
  app.add_flag("--units", options.units,
               "Show units, tensors, padding and the ranks that own them");
  app.add_flag("--program", options.program, "Show every operation of a step");
  app.add_flag("--compare", options.compare, "Compare all strategies");
  app.add_option("--svg", options.svg, "Draw the lanes of a step over time into FILE")
      ->type_name("FILE");
  add_speeds(app, options);
}

}  // namespace

std::function<int()> define_shard_plan(CLI::App& app) {
  auto options = std::make_shared<ShardPlanOptions>();  // kept alive by the returned action
  app.add_option("RUN.toml|MODEL", options->config_path,
                 "A run file, a published model such as llama3-8b, or a config.json")
      ->required();
  add_under(app, kWithRunFile, [&] { add_run_options(app, *options); });
  add_model_plan_options(app, options->model);
  add_format_option(app, options->format);
  return [options, &app] { return run(app, *options); };
}

}  // namespace gxp

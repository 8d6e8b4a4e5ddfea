// gxp shard-plan: what gxp train would do in a step of a run: who owns what, what moves when, how
// long it takes; or what a model would take on published hardware. Starts no ranks.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/shard_plan/run.h"

namespace gxp {
namespace {

int run(const CLI::App& app, const ShardPlanOptions& options) {
  const bool is_run = options.config_path.ends_with(".toml");
  check_plan_options(app, options.config_path, is_run);
  return is_run ? plan_run_file(options)
                : plan_model(options.config_path, options.model, options.format);
}

}  // namespace

std::function<int()> define_shard_plan(CLI::App& app) {
  auto options = std::make_shared<ShardPlanOptions>();  // kept alive by the returned action
  app.add_option("config", options->config_path,
                 "TOML file of the run, see gxp.toml(5); or a MODEL: a published one, such as "
                 "llama3-8b, or a Hugging Face config.json")
      ->required();
  add_set_option(app, options->sets);
  add_number_option(app, "--nproc", options->ranks.nproc, 1, kMostPlannedRanks,
                    "Ranks on each host (1)");
  add_number_option(app, "--nnodes", options->ranks.nnodes, 1, kMostPlannedRanks, "Hosts (1)");
  add_number_option(app, "--rank", options->rank, 0, kMostPlannedRanks - 1,
                    "Whose bytes and memory are told (0)");
  app.add_flag("--units", options->units, "Show units, tensors, padding and who owns what");
  app.add_flag("--program", options->program, "Show every operation of a step");
  app.add_flag("--compare", options->compare, "Compare all strategies");
  app.add_option("--svg", options->svg, "Draw the lanes of a step over its time into FILE")
      ->type_name("FILE");
  CLI::Option* measure = app.add_flag(
      "--measure", options->measure,
      "Take an operation's time from a few steps of the model's first blocks, trained here");
  app.add_option("--gflops", options->gflops,
                 "Matrix products of a rank, in 10^9 operations a second; without it measured here")
      ->check(CLI::PositiveNumber)
      ->excludes(measure)
      ->type_name("RATE");
  app.add_option("--memory-gb-per-s", options->memory_gb_per_s,
                 "Memory bandwidth of a rank in all other operations, 10^9 bytes a second; 10")
      ->check(CLI::PositiveNumber)
      ->excludes(measure)
      ->type_name("RATE");
  app.add_option("--file-gb-per-s", options->file_gb_per_s,
                 "Bandwidth of a rank's files of offloaded state, 10^9 bytes a second; 1")
      ->check(CLI::PositiveNumber)
      ->type_name("RATE");
  add_model_plan_options(app, options->model);
  add_format_option(app, options->format);
  return [options, &app] { return run(app, *options); };
}

}  // namespace gxp

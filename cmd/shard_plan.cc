// gxp shard-plan: what gxp train would do in a step of a run, from the program that it would run:
// who owns what, what moves when, how long it takes; or what a model would take on published
// hardware. Starts no ranks.
#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "cmd/command.h"
#include "cmd/exit_codes.h"
#include "cmd/model_plan.h"
#include "cmd/options.h"
#include "cmd/result_file.h"
#include "cmd/run_network.h"
#include "cmd/shard_plan_report.h"
#include "lib/base/error.h"
#include "lib/config/load.h"
#include "lib/forecast/drawing.h"
#include "lib/train/backend.h"
#include "lib/train/measure_ops.h"

namespace gxp {
namespace {

struct Options {
  std::string config_path;
  std::vector<std::string> sets;
  PlannedRanks ranks;
  int rank = 0;
  bool measure = false;
  double gflops = 0;  // 0: measured here
  double memory_gb_per_s = 10;
  double file_gb_per_s = 1;
  bool units = false;
  bool program = false;
  bool compare = false;
  std::string svg;
  ModelPlanOptions model;
  Format format = Format::kText;
};

// What a rank of this host has, among those that share its cores.
struct Machine {
  ComputeTime compute;
  RankCores cores;
};

RankCores cores_of(const Options& options, const RunConfig& config) {
  const int ranks = options.ranks.nproc;
  return {double(std::max(1u, std::thread::hardware_concurrency())) / ranks,
          double(thread_count(config.train, ranks))};
}

Speed speed_of(const Options& options, const RunConfig& config) {
  const double bytes_per_s = options.memory_gb_per_s * 1e9;
  if (options.gflops > 0) return {.flops = options.gflops * 1e9, .bytes_per_s = bytes_per_s};
  Backend backend = make_backend(config.train, options.ranks.nproc);
  const RankCores own = cores_of(options, config);
  const double share = std::min(1.0, own.cores / own.compute_threads);
  return {.flops = measure_matmul_flops(backend) * share, .bytes_per_s = bytes_per_s * share};
}

Machine machine_of(const Options& options, const RunConfig& config) {
  if (!options.measure) return {at_speed(speed_of(options, config)), {}};
  return {as_measured(measure_ops(config, options.ranks.nproc)), cores_of(options, config)};
}

PlannedStep plan_step(const Options& options, const RunConfig& config, const Network& network,
                      const Machine& machine) {
  PlannedStep step;
  step.rank = options.rank;
  step.plan = plan_run(settings_on(config, options.ranks), network.world_size);
  step.traffic = traffic_of(step.plan.step.program, network);
  step.memory = memory_of_run(step.plan, network, step.rank, kMeasuredBytes);
  step.time = time_step(step.plan, step.traffic, machine.compute, machine.cores,
                        {.host_bytes_per_s = options.memory_gb_per_s * 1e9 / 2,  // read and written
                         .file_bytes_per_s = options.file_gb_per_s * 1e9});
  return step;
}

std::vector<PlannedStep> plan_all(const Options& options, const RunConfig& config,
                                  const Network& network, const Machine& machine) {
  std::vector<PlannedStep> steps;
  for (const Strategy& strategy : strategies()) {
    RunConfig other = config;
    other.parallel.strategy = strategy.name;
    if (!strategy.shard_optimizer) other.parallel.shard_size = 0;  // shards nothing
    steps.push_back(plan_step(options, other, network, machine));
  }
  return steps;
}

int run_plan(const Options& options) {
  const int world_size = options.ranks.world_size();
  if (world_size > kMostPlannedRanks)
    fail(ErrorKind::kUsage, "plan {} ranks: {} are the most; give a smaller --nproc or --nnodes",
         world_size, kMostPlannedRanks);
  if (options.rank >= world_size)
    fail(ErrorKind::kUsage, "--rank {}: must be below the number of ranks, {}", options.rank,
         world_size);
  check_writable(options.svg);
  const Environment environment = process_environment();
  const RunConfig config = load_config(options.config_path, options.sets, environment).run;
  const Network network = network_of_run(config, options.ranks, environment);
  const Machine machine = machine_of(options, config);
  const PlannedStep step = plan_step(options, config, network, machine);
  Report report{.schema = "gxp.shard-plan/1"};
  add_step_facts(report, step);
  add_wire(report, step);
  if (options.units || options.format == Format::kJson) add_units(report, step);
  if (options.units) add_tensors(report, step);
  if (options.program) add_program(report, step);
  if (options.compare) add_strategies(report, plan_all(options, config, network, machine));
  print(report, options.format);
  if (!options.svg.empty())
    write_file(options.svg, timeline_svg(step.plan.step.program, step.time));
  return kExitOk;
}

int run(const CLI::App& app, const Options& options) {
  const bool is_run = options.config_path.ends_with(".toml");
  check_plan_options(app, options.config_path, is_run);
  return is_run ? run_plan(options)
                : plan_model(options.config_path, options.model, options.format);
}

}  // namespace

std::function<int()> define_shard_plan(CLI::App& app) {
  auto options = std::make_shared<Options>();  // kept alive by the returned action
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

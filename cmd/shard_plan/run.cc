#include "cmd/shard_plan/run.h"

#include <algorithm>
#include <functional>
#include <thread>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/result_file.h"
#include "cmd/shard_plan/report.h"
#include "lib/arch/architecture.h"
#include "lib/base/error.h"
#include "lib/base/find_row.h"
#include "lib/collective/compress/codec.h"
#include "lib/config/global_batch.h"
#include "lib/config/load.h"
#include "lib/config/rules.h"
#include "lib/data/data_files.h"
#include "lib/replay/gpu_time.h"
#include "lib/replay/plan_search.h"
#include "lib/replay/run_search.h"
#include "lib/tools/planner/drawing.h"
#include "lib/train/measure_ops.h"
#include "lib/train/step/backend.h"

namespace gxp {
namespace {

// What a rank of this host has, among those that share its cores.
struct RankMachine {
  ComputeTime compute;
  RankCores cores;
};

RankCores cores_of(const ShardPlanOptions& options, const RunConfig& config) {
  const int ranks = options.ranks.nproc;
  return {double(std::max(1u, std::thread::hardware_concurrency())) / ranks,
          double(thread_count(config.train, ranks))};
}

Speed speed_of(const ShardPlanOptions& options, const RunConfig& config) {
  const double bytes_per_s = options.memory_gb_per_s * 1e9;
  if (options.gflops > 0) return {.flops = options.gflops * 1e9, .bytes_per_s = bytes_per_s};
  Backend backend = make_backend(config.train, options.ranks.nproc);
  const RankCores own = cores_of(options, config);
  const double share = std::min(1.0, own.cores / own.compute_threads);
  return {.flops = measure_matmul_flops(backend, dtype_of(config.train.precision)) * share,
          .bytes_per_s = bytes_per_s * share};
}

RankMachine machine_of(const ShardPlanOptions& options, const RunConfig& config) {
  if (!options.gpu_of_classes.empty())
    return {on_gpu(find_row(gpus(), options.gpu_of_classes, "--time-by-class")), {}};
  if (!options.measure) return {at_speed(speed_of(options, config)), {}};
  return {as_measured(measure_ops(config, options.ranks.nproc)), cores_of(options, config)};
}

PlannedStep plan_step(const ShardPlanOptions& options, const RunConfig& config,
                      const Network& network, const RankMachine& machine) {
  PlannedStep step;
  step.rank = options.rank;
  step.plan =
      plan_run(settings_on(config, options.ranks), {network.world_size, options.ranks.nnodes});
  if (!options.gpu_of_classes.empty())
    check_predictable(step.plan, find_row(gpus(), options.gpu_of_classes, "--time-by-class"));
  step.traffic = traffic_of(step.plan.step.program, network);
  step.memory = memory_of_run(step.plan, network, step.rank, terms_of_device(config, step.plan));
  step.time = time_step(step.plan, step.traffic, machine.compute, machine.cores,
                        {.host_bytes_per_s = options.memory_gb_per_s * 1e9 / 2,  // read and written
                         .file_bytes_per_s = options.file_gb_per_s * 1e9});
  return step;
}

std::vector<PlannedStep> plan_all(const ShardPlanOptions& options, const RunConfig& config,
                                  const Network& network, const RankMachine& machine) {
  std::vector<PlannedStep> steps;
  for (const Strategy& strategy : strategies()) {
    RunConfig other = config;
    other.parallel.strategy = strategy.name;
    if (!strategy.shard_optimizer) other.parallel.shard_size = 0;  // shards nothing
    steps.push_back(plan_step(options, other, network, machine));
  }
  return steps;
}

constexpr int kMostSearchedRanks = 256;  // some milliseconds a plan, hundreds of plans

// Every micro-batch from the third on takes as long as the third, and no more memory, unless all
// their sums are kept apart.
PlanCost cost_of(const RunConfig& config,
                 const std::function<PlannedStep(const RunConfig&)>& plan) {
  const auto with = [&](int grad_accum) -> PlanCost {
    RunConfig run = config;
    run.train.grad_accum = grad_accum;
    const PlannedStep step = plan(run);
    return {total_of(step.memory.peak), step.time.seconds};
  };
  const int all = config.train.grad_accum;
  if (all <= 3 || config.train.deterministic == Determinism::kAnyWorldSize) return with(all);
  const PlanCost three = with(3);
  return {three.bytes, three.seconds + (all - 3) * (three.seconds - with(2).seconds)};
}

uint64_t limit_of(const ShardPlanOptions& options, const RunConfig& config) {
  if (!options.model.limit.empty()) return read_limit(options.model.limit);
  const uint64_t device = config.train.device_memory_bytes;
  return device > 0 ? device : UINT64_MAX;
}

// The run with each codec of `setting` that its other settings allow and that something travels in;
// none if it has one already.
std::vector<PlannedStep> plan_codecs(const RunConfig& fastest, std::string CommConfig::*setting,
                                     const PlannedRanks& ranks,
                                     const std::function<PlannedStep(const RunConfig&)>& plan) {
  std::vector<PlannedStep> steps;
  if (fastest.comm.*setting != "none" || ranks.nnodes == 1) return steps;
  RunConfig run = fastest;
  for (const Codec& codec : codecs()) {
    run.comm.*setting = codec.name;
    if (!broken_rules(run).empty() || !can_compress(run, {ranks.world_size(), ranks.nnodes}))
      continue;
    PlannedStep step = plan(run);
    if (std::ranges::any_of(step.plan.step.program.ops,
                            [&](const Op& op) { return op.collective.codec == codec.name; }))
      steps.push_back(std::move(step));
  }
  return steps;
}

RunChoices search(const ShardPlanOptions& options, const RunConfig& config, const Network& network,
                  const RankMachine& machine) {
  if (network.world_size > kMostSearchedRanks)
    fail(ErrorKind::kUsage, "search plans of {} ranks: the limit is {}; give a smaller --nnodes",
         network.world_size, kMostSearchedRanks);
  const auto plan = [&](const RunConfig& run) { return plan_step(options, run, network, machine); };
  const std::vector<RunConfig> variants = run_variants(config, network.world_size);
  const uint64_t limit = limit_of(options, config);
  std::vector<CostedPlan<RunConfig>> fitting;
  for (const RunConfig& variant : variants) {
    if (!can_compress(variant, {network.world_size, options.ranks.nnodes})) continue;
    const PlanCost cost = cost_of(variant, plan);
    if (cost.bytes <= limit) fitting.push_back({variant, cost});
  }
  RunChoices choices{.tried = variants.size(), .best = {}, .settings = {}};
  for (auto& best : pareto_of(std::move(fitting))) {
    choices.best.push_back(plan(best.plan));
    choices.settings.push_back(std::move(best.plan));
  }
  if (choices.best.empty()) return choices;
  const RunConfig& fastest = choices.settings.back();
  choices.with_codec = plan_codecs(fastest, &CommConfig::codec, options.ranks, plan);
  choices.with_gather_codec = plan_codecs(fastest, &CommConfig::gather_codec, options.ranks, plan);
  return choices;
}

// The settings; of a run on a GPU where its kernels are asked about.
RunConfig read_run(const ShardPlanOptions& options, const Environment& environment) {
  RunConfig config = with_files(load_config(options.config_path, options.sets, environment).run,
                                {FilesNeeded::kNone});
  config = with_global_batch(config, options.ranks.world_size());
  if (options.gpu_of_classes.empty()) return config;
  if (config.train.device == TrainDevice::kCpu)
    fail(ErrorKind::kUsage, "--time-by-class {}: train.device is cpu; set train.device=cuda",
         options.gpu_of_classes);
  config.train.device = TrainDevice::kCuda;
  return config;
}

}  // namespace

int plan_run_file(const ShardPlanOptions& options) {
  const int world_size = options.ranks.world_size();
  if (world_size > kMostPlannedRanks)
    fail(ErrorKind::kUsage, "plan {} ranks: the limit is {}; give a smaller --nproc or --nnodes",
         world_size, kMostPlannedRanks);
  if (options.rank >= world_size)
    fail(ErrorKind::kUsage, "--rank {}: must be below the number of ranks, {}", options.rank,
         world_size);
  if (!options.model.limit.empty() && !options.model.search)
    fail(ErrorKind::kUsage, "--limit with a run file needs --search; add it, or use gxp memcalc");
  check_writable(options.svg);
  const Environment environment = process_environment();
  const RunConfig config = read_run(options, environment);
  const Network network = network_of_run(config, options.ranks, environment);
  const RankMachine machine = machine_of(options, config);
  const PlannedStep step = plan_step(options, config, network, machine);
  Report report{.schema = "gxp.shard-plan/1"};
  add_step_facts(report, step);
  report.facts.push_back(documents_fact(config));
  add_limit_rule(report, options.model.limit);
  add_wire(report, step);
  if (!options.gpu_of_classes.empty()) add_classes(report, step, find_gpu(options.gpu_of_classes));
  if (options.units || options.format == Format::kJson) add_units(report, step);
  if (options.units) add_tensors(report, step);
  if (options.program) add_program(report, step);
  if (options.model.search) add_choices(report, search(options, config, network, machine));
  if (options.compare) add_strategies(report, plan_all(options, config, network, machine));
  print(report, options.format);
  if (!options.svg.empty())
    write_file(options.svg, timeline_svg(step.plan.step.program, step.time));
  return kExitOk;
}

}  // namespace gxp

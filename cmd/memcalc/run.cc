#include "cmd/memcalc/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/result_file.h"
#include "cmd/run_network.h"
#include "lib/base/find_row.h"
#include "lib/config/global_batch.h"
#include "lib/config/load.h"
#include "lib/data/data_files.h"
#include "lib/tools/planner/drawing.h"

namespace gxp {
namespace {

PlannedRanks ranks_on(int gpus, const MemcalcOptions& options) {
  return {.nproc = gpus / options.nnodes, .nnodes = options.nnodes};
}

PlannedRun plan_on(const RunConfig& config, const PlannedRanks& ranks,
                   const Environment& environment) {
  const int gpus = ranks.world_size();
  const RunConfig settings = with_global_batch(settings_on(config, ranks), gpus);
  PlannedRun run{.gpus = gpus, .plan = plan_run(settings, {gpus, ranks.nnodes}), .memory = {}};
  const Network network = network_of_run(config, ranks, environment);
  run.memory = memory_of_run(run.plan, network, 0, terms_of_device(config, run.plan));
  return run;
}

// What saves and replicas in the background take of a host's memory.
void add_copies(Report& report, const CheckpointConfig& checkpoint, const RunPlan& plan,
                int hosts) {
  const SavedBytes saved = saved_bytes(plan);
  const auto of_a_host = [&](uint64_t bytes) {
    return int64_t((bytes + uint64_t(hosts) - 1) / uint64_t(hosts));
  };
  const bool has_replicas = checkpoint.replica != ReplicaPlace::kNone;
  const int copies = int(checkpoint.async) + int(has_replicas);
  if (copies > 0)
    report.facts.push_back({{"staged_bytes", "staged copies of the state, per host", Style::kBytes},
                            copies * of_a_host(saved.total())});
  // Two replicas of what is trained, and one of what is frozen; on this host and on the next.
  if (has_replicas)
    report.facts.push_back({{"replica_bytes", "replicas, per host", Style::kBytes},
                            (hosts > 1 ? 2 : 1) * of_a_host(2 * saved.trained + saved.frozen)});
}

// The most of a quantity on each number of GPUs.
void add_solutions(Report& report, const MemcalcOptions& options, const RunConfig& config,
                   const Environment& environment, uint64_t limit_bytes) {
  const Quantity<RunConfig>& quantity =
      find_row(run_quantities(), name_of(*options.solve), "--solve");
  std::vector<RunSolution> solutions;
  for (const int gpus : gpus_of(options)) {
    const PlannedRanks ranks = ranks_on(gpus, options);
    const Network network = network_of_run(config, ranks, environment);
    const auto run_with = [&](int value) {
      RunConfig run = settings_on(config, ranks);
      quantity.set(run, value);
      const RunPlan plan = plan_run(run, {gpus, ranks.nnodes});
      return memory_of_run(plan, network, 0, terms_of_device(run, plan));
    };
    const auto bytes_of = [&](int value) { return total_of(run_with(value).peak); };
    const int least = quantity.least(config);
    const Largest largest = find_largest(bytes_of, limit_bytes, least, quantity.most);
    solutions.push_back({gpus, largest, run_with(std::max(largest.value + 1, least))});
  }
  add_run_solutions(report, quantity, solutions);
}

}  // namespace

bool asks_for_run(const MemcalcOptions& options) { return options.model.ends_with(".toml"); }

int plan_memory_of_run(const MemcalcOptions& options, MemcalcView view) {
  check_writable(options.svg);
  const Environment environment = process_environment();
  const RunConfig config =
      with_files(load_config(options.model, options.sets, environment).run, {FilesNeeded::kNone});
  if (!view.limit_bytes && config.train.device_memory_bytes > 0)
    view.limit_bytes = config.train.device_memory_bytes;
  Report report{.schema = "gxp.memcalc/1"};
  report.facts = {{{"run"}, options.model},
                  {{"strategy"}, config.parallel.strategy},
                  {{"recompute"}, std::string(config.train.recompute)},
                  {{"keep"},
                   config.train.keep == KeepSetting::kAuto ? "auto, counted as none"
                                                           : std::string(config.train.keep)},
                  documents_fact(config)};
  if (view.limit_bytes)
    report.facts.push_back({{"limit_bytes", "limit", Style::kBytes}, int64_t(*view.limit_bytes)});
  add_limit_rule(report, options.limit);
  if (options.solve && config.train.global_batch > 0)
    fail(ErrorKind::kUsage,
         "--solve: train.global_batch would change train.grad_accum with it; set "
         "it to 0, and train.grad_accum");
  if (options.solve) {
    add_solutions(report, options, config, environment, *view.limit_bytes);
    print(report, options.format);
    return kExitOk;
  }
  std::vector<PlannedRun> runs;
  for (const int gpus : gpus_of(options))
    runs.push_back(plan_on(config, ranks_on(gpus, options), environment));
  const PlannedRun& last = runs.back();
  report.facts.push_back({{"parameters"}, int64_t(last.plan.architecture.parameter_count())});
  const uint64_t reserve = terms_of_device(config, last.plan).reserve_bytes;
  if (reserve > 0)
    report.facts.push_back(
        {{"reserve_bytes", "kept free for trials and code", Style::kBytes}, int64_t(reserve)});
  add_copies(report, config.checkpoint, last.plan, options.nnodes);
  add_run_results(report, runs, view.limit_bytes);
  add_run_phases(report, runs);
  if (options.explain) add_run_terms(report, runs);
  if (options.format != Format::kText) add_run_curve(report, last);
  print(report, options.format);
  if (options.format == Format::kText)
    write_stdout(fmt::format("\nbytes that live in a step, operation by operation, {} GPU(s):\n{}",
                             last.gpus, memory_plot(last.memory.step)));
  if (!options.svg.empty())
    write_file(options.svg, memory_svg(last.plan.step.program, last.memory.step));
  return kExitOk;
}

}  // namespace gxp

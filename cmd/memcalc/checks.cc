// Which options of gxp memcalc exclude each other, and which lack another.
#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cmd/memcalc/options.h"
#include "cmd/plan_options.h"
#include "cmd/run_network.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

void refuse(bool condition, const char* message) {
  if (condition) fail(ErrorKind::kUsage, "memcalc: {}", message);
}

bool has_float32_parameters(const MemcalcOptions& options) {
  return find_precision(options.precision).parameter == sizeof(float);
}

// The unknown is not given, and what it depends on is.
void check_solve(const MemcalcOptions& options) {
  refuse(options.limit.empty(), "--solve needs the memory of a GPU; add --limit 80GB");
  refuse(!options.compat.empty() || options.explain,
         "--solve works with gxp's own prediction and prints only its result; leave out --compat "
         "and --explain");
  refuse(options.solve == Unknown::kGpus && (!options.gpus.empty() || options.plan.shard > 0),
         "--solve gpus finds how many GPUs share the model; leave out --gpus and --shard");
  if (options.solve == Unknown::kGpus) return;
  refuse(model_of(options) == nullptr,
         "--solve batch, seq and layers depend on the model's shape; give a MODEL whose shape is "
         "known, or use --solve gpus");
  refuse(options.solve == Unknown::kSequence && has_float32_parameters(options),
         "the formula for activations is for 16 bits; use --precision bf16, or --solve layers");
  refuse(options.solve == Unknown::kSequence && options.sequence > 0,
         "--solve seq finds the length of a sequence; leave out --sequence");
  refuse(options.solve == Unknown::kBatch && options.plan.micro_batch > 1,
         "--solve batch finds the micro-batch; leave out --micro-batch");
  refuse(options.solve == Unknown::kBatch && options.sequence == 0,
         "--solve batch depends on the length of a sequence; add --sequence");
}

// The options of a plan that say nothing about model states.
void check_activations(const CLI::App& app, const MemcalcOptions& options) {
  if (options.sequence == 0 && options.solve != Unknown::kSequence) {
    for (const char* name : {"--recompute", "--micro-batch", "--accumulate", "--software",
                             "--interleave", "--no-sequence-parallel", "--context-parallel"})
      if (app.count(name) > 0)
        fail(ErrorKind::kUsage,
             "memcalc: {} affects activations, which depend on the sequence length; add --sequence",
             name);
  }
  const bool has_other_head = options.file && !options.file->architecture.empty();
  if (has_other_head && (options.sequence > 0 || options.solve == Unknown::kSequence))
    fail(ErrorKind::kUsage,
         "memcalc: {} is {}, whose head's activations are not predicted; leave out --sequence and "
         "--solve seq",
         options.model, options.file->architecture);
  if (options.sequence == 0) return;
  refuse(model_of(options) == nullptr,
         "activations depend on the model's shape; give a MODEL whose shape is known, or leave out "
         "--sequence");
  refuse(
      has_float32_parameters(options),
      "the formula for activations is for 16 bits; use --precision bf16 or leave out --sequence");
}

void check_optimizer(const MemcalcOptions& options) {
  const bool knows_tensors = model_of(options) != nullptr;
  refuse(!knows_tensors && find_optimizer_state(options.optimizer).moments_of_others > 0,
         "the optimizer keeps more for embeddings, head and norms than for other tensors; give a "
         "MODEL whose shape is known");
}

void check_compat(const CLI::App& app, const MemcalcOptions& options) {
  const bool by_hosts = !options.compat.empty() && find_calculator(options.compat).by_hosts;
  refuse(!by_hosts && (options.gpus_per_host > 0 || !options.largest_layer.empty()),
         "--gpus-per-host and --largest-layer go with --compat deepspeed");
  if (options.compat.empty()) return;
  refuse(options.plan.shard > 0,
         "no other calculator knows hybrid sharding; leave out --shard or --compat");
  refuse(options.optimizer != "adamw" && options.optimizer != "adam",
         "every other calculator assumes Adam; leave out --optimizer or --compat");
  const auto names = plan_option_names();
  const bool plan =
      std::ranges::any_of(names, [&](const auto& name) { return app.count(name) > 0; });
  refuse(plan || options.sequence > 0,
         "other calculators know no activations and no plan; leave out --compat, or --sequence and "
         "the options of a plan");
}

}  // namespace

void check(const CLI::App& app, const MemcalcOptions& options) {
  refuse(!options.sets.empty() || !options.svg.empty(),
         "--set and --svg go with a run file as MODEL, RUN.toml");
  refuse(options.model.empty() == options.params.empty(), "give either MODEL or --params");
  if (options.solve) check_solve(options);
  check_optimizer(options);
  check_compat(app, options);
  check_activations(app, options);
  refuse(
      options.padding && (model_of(options) == nullptr || !options.compat.empty() || options.solve),
      "--padding depends on the tensors; give a MODEL whose shape is known, without --compat or "
      "--solve");
}

void check_run_options(const CLI::App& app, const MemcalcOptions& options) {
  constexpr std::array<std::string_view, 11> kOfRun = {
      "RUN.toml|MODEL", "--gpus",    "--nnodes", "--set",    "--svg", "--limit",
      "--solve",        "--explain", "--unit",   "--format", "--help"};
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    if (std::ranges::find(kOfRun, option->get_name()) == kOfRun.end())
      fail(ErrorKind::kUsage,
           "memcalc {}: a run file describes the whole run; change it with --set, and leave out "
           "{}",
           options.model, option->get_name());
  }
  const bool solve = options.solve.has_value();
  refuse(solve && options.limit.empty(), "--solve needs the memory of a GPU; add --limit 80GB");
  refuse(solve && (options.explain || !options.svg.empty()),
         "--solve goes with neither --explain nor --svg; leave them out");
  for (const int gpus : gpus_of(options)) {
    if (gpus < 1 || gpus > kMostPlannedRanks)
      fail(ErrorKind::kUsage, "plan a run on {} GPUs: give --gpus numbers from 1 to {}", gpus,
           kMostPlannedRanks);
    if (gpus % options.nnodes != 0)
      fail(ErrorKind::kUsage,
           "plan a run on {} GPUs of {} hosts: {} does not divide {}; give --nnodes a divisor",
           gpus, options.nnodes, options.nnodes, gpus);
  }
}

}  // namespace gxp

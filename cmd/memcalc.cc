// gxp memcalc: memory of a model's states per GPU, from its size alone; what other calculators
// answer; the fewest GPUs that fit; the memory of a run. Touches no device.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/command.h"
#include "cmd/exit_codes.h"
#include "cmd/memcalc_options.h"
#include "cmd/memcalc_report.h"
#include "cmd/memcalc_run.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

std::optional<uint64_t> limit_of(const MemcalcOptions& options) {
  if (options.limit.empty()) return std::nullopt;
  const std::optional<uint64_t> limit = parse_bytes(options.limit);
  if (!limit || *limit == 0)
    fail(ErrorKind::kUsage, "--limit '{}': no size above 0; give one such as 80GB or 80GiB",
         options.limit);
  return limit;
}

void add_facts(const MemcalcOptions& options, const Training& training, const MemcalcView& view,
               Report& report) {
  const auto add = [&](const char* key, Cell value) {
    report.facts.push_back({{key}, std::move(value)});
  };
  if (!options.model.empty()) add("model", options.model);
  add("parameters", int64_t(training.parameters));
  add("precision", options.precision);
  add("optimizer", options.optimizer);
  if (options.shard > 0) add("shard", int64_t{options.shard});
  if (!options.compat.empty()) add("compat", options.compat);
  if (view.limit_bytes) {
    const Column column{"limit_bytes", "limit " + view.unit.name, view.unit.style};
    report.facts.push_back({column, int64_t(*view.limit_bytes)});
  }
}

int run(const MemcalcOptions& options) {
  Report report{.schema = "gxp.memcalc/1"};
  if (options.list) {
    if (!options.model.empty() || !options.params.empty())
      fail(ErrorKind::kUsage, "memcalc: --list shows the models, all of them; leave MODEL out");
    add_published_models(report);
    print(report, options.format);
    return kExitOk;
  }
  MemcalcView view{find_unit(options.unit), options.explain, limit_of(options)};
  if (asks_for_run(options)) return plan_memory_of_run(options, view);
  check(options);
  const Training training = training_of(options);
  add_facts(options, training, view, report);
  if (!options.solve.empty()) {
    add_least_gpus(report, training, stages_of(options), view);
  } else if (!options.compat.empty()) {
    const Tool& tool = find_tool(options.compat);
    add_answers(report, tool, questions_of(options, tool), view);
  } else {
    if (const auto shape = activation_shape_of(options)) {
      view.activations = explain_activations(*shape, options.recompute);
    }
    add_model_states(report, training, placements_of(options), view);
  }
  print(report, options.format);
  return kExitOk;
}

}  // namespace

std::function<int()> define_memcalc(CLI::App& app) {
  auto options = std::make_shared<MemcalcOptions>();  // kept alive by the returned action
  add_memcalc_options(app, *options);
  return [options] { return run(*options); };
}

}  // namespace gxp

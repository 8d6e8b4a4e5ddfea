// gxp memcalc: memory of a model's states per GPU, from its size alone; what other calculators
// answer; the fewest GPUs that fit; the memory of a run. Touches no device.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/command.h"
#include "cmd/exit_codes.h"
#include "cmd/memcalc/options.h"
#include "cmd/memcalc/report.h"
#include "cmd/memcalc/run.h"
#include "cmd/options.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

std::optional<uint64_t> limit_of(const MemcalcOptions& options) {
  if (options.limit.empty()) return std::nullopt;
  return read_limit(options.limit);
}

void add_facts(const MemcalcOptions& options, const Training& training, const MemcalcView& view,
               Report& report) {
  const auto add = [&](const char* key, Cell value) {
    report.facts.push_back({{key}, std::move(value)});
  };
  if (!options.model.empty()) add("model", options.model);
  add("parameters", int64_t(training.parameters));
  if (options.file && !options.file->family.empty()) add("family", options.file->family);
  if (options.file && !options.file->dtype.empty()) add("dtype", options.file->dtype);
  if (options.file && options.file->stored_bytes)
    report.facts.push_back(
        {{"stored_bytes", "stored weights", Style::kBytes}, int64_t(*options.file->stored_bytes)});
  add("precision", options.precision);
  add("optimizer", options.optimizer);
  if (options.shard > 0) add("shard", int64_t{options.shard});
  if (model_parallel_of(options) > 1)
    report.facts.push_back(
        {{"model_parallel", "GPUs of a copy"}, int64_t{model_parallel_of(options)}});
  if (!options.compat.empty()) add("compat", options.compat);
  if (view.limit_bytes) {
    const Column column{"limit_bytes", "limit " + view.unit.name, view.unit.style};
    report.facts.push_back({column, int64_t(*view.limit_bytes)});
  }
}

MemcalcView view_of(const MemcalcOptions& options) {
  return {find_unit(options.unit), options.explain, limit_of(options)};
}

// gxp's own answer.
void add_estimate(const MemcalcOptions& options, const MemcalcView& view, Report& report) {
  const std::vector<EstimateQuestion> questions = estimates_of(options);
  if (options.solve == "gpus") return add_least_gpus(report, questions, view);
  if (!options.solve.empty())
    return add_most(report, find_estimate_quantity(options.solve), questions, view);
  add_estimates(report, questions, view);
  if (options.padding) add_padding(report, *model_of(options), gpus_of(options));
}

void list_models(const MemcalcOptions& options, Report& report) {
  if (!options.model.empty() || !options.params.empty())
    fail(ErrorKind::kUsage, "memcalc: --list shows the models, all of them; leave MODEL out");
  if (options.limit.empty()) return add_published_models(report);
  const Training training{0, find_precision(options.precision),
                          find_optimizer_state(options.optimizer)};
  const std::vector<int> gpus = gpus_of(options);
  for (const int count : gpus) check(Placement{.gpus = count});
  add_fitting_models(report, training, gpus, view_of(options));
}

int run(MemcalcOptions options) {
  Report report{.schema = "gxp.memcalc/1"};
  if (options.list) {
    list_models(options, report);
    print(report, options.format);
    return kExitOk;
  }
  const MemcalcView view = view_of(options);
  if (asks_for_run(options)) return plan_memory_of_run(options, view);
  read_model(options);
  check(options);
  const Training training = training_of(options);
  add_facts(options, training, view, report);
  if (!options.compat.empty()) {
    const Tool& tool = find_tool(options.compat);
    add_answers(report, tool, questions_of(options, tool), view);
  } else {
    add_estimate(options, view, report);
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

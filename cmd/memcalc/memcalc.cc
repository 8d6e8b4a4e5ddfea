// gxp memcalc: the memory of a model or a run per GPU, by formula or replayed; what other
// calculators answer; the most that fits. Touches no device.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/command.h"
#include "cmd/exit_codes.h"
#include "cmd/memcalc/options.h"
#include "cmd/memcalc/report.h"
#include "cmd/memcalc/run.h"
#include "cmd/options.h"
#include "lib/base/find_row.h"

namespace gxp {
namespace {

std::optional<uint64_t> limit_of(const MemcalcOptions& options) {
  if (options.limit.empty()) return std::nullopt;
  return read_limit(options.limit);
}

void add_facts(const MemcalcOptions& options, const MemcalcView& view, Report& report) {
  const auto add = [&](const char* key, Cell value) {
    report.facts.push_back({{key}, std::move(value)});
  };
  if (!options.model.empty()) add("model", options.model);
  add("parameters", int64_t(parameters_of(options)));
  if (options.file && !options.file->family.empty()) add("family", options.file->family);
  if (options.file && !options.file->architecture.empty())
    add("architecture", options.file->architecture);
  if (options.file && !options.file->dtype.empty()) add("dtype", options.file->dtype);
  if (options.file && options.file->stored_bytes)
    report.facts.push_back(
        {{"stored_bytes", "stored weights", Style::kBytes}, int64_t(*options.file->stored_bytes)});
  add("precision", options.precision);
  add("optimizer", options.optimizer);
  if (const PublishedModel* model = model_of(options); model != nullptr) {
    if (const std::string note = beyond_positions(*model, uint64_t(options.sequence));
        !note.empty())
      add("positions", note);
  }
  if (options.plan.shard > 0) add("shard", int64_t{options.plan.shard});
  if (model_parallel_of(options) > 1)
    report.facts.push_back(
        {{"model_parallel", "GPUs of a copy"}, int64_t{model_parallel_of(options)}});
  if (!options.compat.empty()) add("compat", options.compat);
  if (view.limit_bytes) {
    const Column column{"limit_bytes", "limit " + view.unit.name, view.unit.style};
    report.facts.push_back({column, int64_t(*view.limit_bytes)});
    add_limit_rule(report, options.limit);
  }
}

MemcalcView view_of(const MemcalcOptions& options) {
  return {find_unit(options.unit), options.explain, limit_of(options)};
}

// gxp's own answer.
void add_prediction(const MemcalcOptions& options, const MemcalcView& view, Report& report) {
  const std::vector<TrainCase> cases = cases_of(options);
  if (options.solve == Unknown::kGpus) return add_least_gpus(report, cases, view);
  if (options.solve)
    return add_most(report, find_row(model_quantities(), name_of(*options.solve), "--solve"), cases,
                    view);
  add_memory(report, cases, view);
  if (options.padding) add_padding(report, *model_of(options), gpus_of(options));
}

void list_models(const MemcalcOptions& options, Report& report) {
  if (!options.model.empty() || !options.params.empty())
    fail(ErrorKind::kUsage, "memcalc: --list shows all models; leave MODEL out");
  if (options.limit.empty()) return add_published_models(report);
  const Training training{0, find_precision(options.precision),
                          find_optimizer_state(options.optimizer)};
  const std::vector<int> gpus = gpus_of(options);
  for (const int count : gpus) check(TrainCase{.plan = {.sequence = 0, .gpus = count}});
  add_limit_rule(report, options.limit);
  add_fitting_models(report, training, gpus, view_of(options));
}

int run(const CLI::App& app, MemcalcOptions options) {
  Report report{.schema = "gxp.memcalc/1"};
  if (options.list) {
    list_models(options, report);
    print(report, options.format);
    return kExitOk;
  }
  const MemcalcView view = view_of(options);
  if (asks_for_run(options)) {
    check_run_options(app, options);
    return plan_memory_of_run(options, view);
  }
  read_model(options);
  check(app, options);
  add_facts(options, view, report);
  if (!options.compat.empty()) {
    const Calculator& calculator = find_calculator(options.compat);
    add_answers(report, calculator, inputs_of(options, calculator), view);
  } else {
    add_prediction(options, view, report);
  }
  print(report, options.format);
  return kExitOk;
}

}  // namespace

std::function<int()> define_memcalc(CLI::App& app) {
  auto options = std::make_shared<MemcalcOptions>();  // kept alive by the returned action
  add_memcalc_options(app, *options);
  return [options, &app] { return run(app, *options); };
}

}  // namespace gxp

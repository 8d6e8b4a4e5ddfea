#include "cmd/train_times.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "cmd/options.h"
#include "lib/base/find_row.h"
#include "lib/base/log.h"
#include "lib/program/run_plan.h"
#include "lib/replay/gpu_time.h"

namespace gxp {
namespace {

struct Prediction {
  std::string_view gpu;
  StepClasses step;
};

std::optional<Prediction> predict(const TimeOptions& options, const RunConfig& run,
                                  const Device& device, int world_size) {
  const bool is_named = !options.predicted_on.empty();
  if (!is_named && device.space() != MemorySpace::kCuda) return {};
  const Gpu* gpu =
      is_named ? &find_gpu(options.predicted_on) : find_gpu_of_device(device.description());
  const RunPlan plan = plan_run(run, world_size);
  const Support known =
      gpu == nullptr
          ? Support{false, "the GPU's rates are unknown; name a similar one with --predicted-on"}
          : can_predict(plan, *gpu);
  if (known) return Prediction{gpu->name, time_by_class(plan, *gpu)};
  log_info("no prediction: {}", known.reason);
  return {};
}

struct Row {
  std::string name;
  double seconds = 0;
  std::optional<double> predicted, ideal;
};

std::vector<Row> rows_of(const ClassMeasurement& measured, const std::optional<Prediction>& beside,
                         int world_size) {
  std::vector<Row> rows;
  for (size_t i = 0; i < kKernelClassNames.size(); ++i)
    rows.push_back({.name = std::string(kKernelClassNames[i]),
                    .seconds = measured.of_classes.classes[i],
                    .predicted = {},
                    .ideal = {}});
  for (const ClassTime& of : beside ? beside->step.classes : std::vector<ClassTime>()) {
    rows[size_t(of.of)].predicted = of.seconds;
    rows[size_t(of.of)].ideal = of.ideal_seconds;
  }
  std::erase_if(rows, [](const Row& row) { return row.seconds == 0 && !row.predicted; });
  std::ranges::stable_sort(rows, std::greater<>(), &Row::seconds);
  const double rest = measured.step_seconds - measured.of_classes.sum();
  rows.push_back({.name = "gaps, copies and waits for the host",
                  .seconds = rest,
                  .predicted = {},
                  .ideal = {}});
  if (beside) rows.back().predicted = beside->step.gap_seconds;
  if (world_size > 1)
    rows.push_back({.name = "waits for other lanes",
                    .seconds = measured.of_classes.waits,
                    .predicted = {},
                    .ideal = {}});
  return rows;
}

// Nothing where it is not known.
Cell times(double factor, const std::optional<double>& seconds) {
  if (!seconds) return {};
  return factor * *seconds;
}

std::optional<double> inverse(const std::optional<double>& seconds) {
  if (seconds.value_or(0) <= 0) return {};
  return 1 / *seconds;
}

void add_facts(Report& report, const ClassMeasurement& measured,
               const std::optional<Prediction>& beside, int world_size) {
  report.facts = {
      {{"measured_on", "measured on"}, measured.device},
      {{"milliseconds", "ms of the step with marks, without CUDA graphs"},
       1e3 * measured.step_seconds},
      {{"plain_milliseconds", "ms of a plain step"}, 1e3 * measured.plain_seconds},
      {{"cuda_graphs", "CUDA graphs in plain steps"},
       measured.graphs.empty() ? Cell() : Cell(measured.graphs)},
      {{"tokens_per_second", "tokens per second of all ranks, plain steps"},
       double(measured.tokens) / measured.plain_seconds},
      {{"mfu", "mfu, plain steps"}, measured.mfu ? Cell(*measured.mfu) : Cell()},
      {{"mfu_of", "mfu is a share of"}, measured.mfu_of.empty() ? Cell() : Cell(measured.mfu_of)}};
  if (world_size > 1)
    report.facts.push_back(
        {{"collectives_milliseconds", "ms of collectives, some at the same time as kernels"},
         1e3 * measured.of_classes.collectives});
  if (!beside) return;
  report.facts.push_back({{"predicted_on", "predicted on"}, std::string(beside->gpu)});
  report.facts.push_back(
      {{"predicted_milliseconds", "ms of a step, predicted"}, 1e3 * beside->step.seconds()});
}

Report make_report(const ClassMeasurement& measured, const std::optional<Prediction>& beside,
                   int world_size) {
  Report report{.schema = "gxp.train-times/1"};
  add_facts(report, measured, beside, world_size);
  std::vector<Column> columns = {{"class"}, {"milliseconds", "ms"}, {"share"}};
  if (beside)
    columns.insert(columns.end(), {{"predicted_milliseconds", "predicted ms"},
                                   {"ratio", "measured/predicted"},
                                   {"ideal_milliseconds", "ideal ms"}});
  Table& table = report.add_table("classes", std::move(columns));
  for (const Row& row : rows_of(measured, beside, world_size)) {
    std::vector<Cell> cells =
        make_row(row.name, 1e3 * row.seconds, row.seconds / measured.step_seconds);
    if (beside) {
      cells.push_back(times(1e3, row.predicted));
      cells.push_back(times(row.seconds, inverse(row.predicted)));
      cells.push_back(times(1e3, row.ideal));
    }
    table.add_row(std::move(cells));
  }
  return report;
}

}  // namespace

void add_time_options(CLI::App& app, TimeOptions& options) {
  CLI::Option* by_class = app.add_flag(
      "--time-by-class", options.by_class,
      "Train nine steps and print the time of each class of kernels. Nothing is saved");
  for (const char* other : {"--resume", "--overwrite", "--metrics", "--evaluate", "--generate"})
    by_class->excludes(other);
  app.add_option("--predicted-on", options.predicted_on,
                 "GPU whose predicted times are shown next to the measured ones")
      ->needs(by_class)
      ->type_name(names_of(gpus()))
      ->default_str("this machine's GPU, if its rates are known");
}

void check_times(const TimeOptions& options, const RunConfig& run, int world_size) {
  if (options.predicted_on.empty()) return;
  const Gpu& gpu = find_row(gpus(), options.predicted_on, "--predicted-on");
  check_predictable(plan_run(run, world_size), gpu);
}

void print_times(const ClassMeasurement& measured, const TimeOptions& options, const RunConfig& run,
                 const Device& device, int world_size, Format format) {
  print(make_report(measured, predict(options, run, device, world_size), world_size), format);
}

}  // namespace gxp

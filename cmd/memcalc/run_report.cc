#include "cmd/memcalc/run.h"

#include <fmt/format.h>

#include <algorithm>

namespace gxp {
namespace {

std::vector<Column> kind_columns() {
  std::vector<Column> columns;
  for (const std::string_view kind : kMemoryKindNames)
    columns.push_back({fmt::format("{}_bytes", kind), std::string(kind), Style::kBytes});
  return columns;
}

void append(std::vector<Column>& columns, std::vector<Column> more) {
  columns.insert(columns.end(), more.begin(), more.end());
}

void append_kinds(std::vector<Cell>& row, const KindBytes& bytes) {
  for (const uint64_t of_kind : bytes) row.emplace_back(int64_t(of_kind));
}

}  // namespace

void add_run_results(Report& report, const std::vector<PlannedRun>& runs,
                     std::optional<uint64_t> limit_bytes) {
  std::vector<Column> columns = {{"gpus"}};
  append(columns, kind_columns());
  append(columns, {{"peak_bytes", "peak", Style::kBytes},
                   {"total_bytes", "total", Style::kBytes},
                   {"peak_phase", "phase"},
                   {"peak_at", "step's peak at"},
                   {"arena_bytes", "arena", Style::kBytes}});
  const bool offloads = std::ranges::any_of(runs, [](const PlannedRun& run) {
    return run.plan.shape.offload.optimizer != Storage::kDevice;
  });
  if (offloads)
    append(columns, {{"host_bytes", "in host memory", Style::kBytes},
                     {"file_bytes", "in files", Style::kBytes}});
  if (limit_bytes) columns.push_back({"fits"});
  Table& results = report.add_table("results", std::move(columns));
  for (const auto& [gpus, plan, memory] : runs) {
    std::vector<Cell> row = make_row(gpus);
    append_kinds(row, memory.peak);
    const auto peak = total_of(memory.peak);
    row.insert(row.end(), {int64_t(peak), int64_t(peak), memory.peak_phase, memory.peak_at,
                           int64_t(memory.step.arena_bytes)});
    const auto& offloaded = plan.step.program.offloaded_bytes;
    if (offloads)
      row.insert(row.end(), {int64_t(offloaded[size_t(Storage::kHost)]),
                             int64_t(offloaded[size_t(Storage::kFile)])});
    if (limit_bytes) row.emplace_back(peak <= *limit_bytes);
    results.add_row(std::move(row));
  }
}

void add_run_phases(Report& report, const std::vector<PlannedRun>& runs) {
  std::vector<Column> columns = {{"gpus"}, {"phase"}};
  append(columns, kind_columns());
  columns.push_back({"total_bytes", "total", Style::kBytes});
  Table& phases = report.add_table("phases", std::move(columns));
  for (const auto& [gpus, plan, memory] : runs) {
    for (const Phase& phase : memory.phases) {
      std::vector<Cell> row = make_row(gpus, phase.name);
      append_kinds(row, phase.bytes);
      row.emplace_back(int64_t(total_of(phase.bytes)));
      phases.add_row(std::move(row));
    }
  }
}

void add_run_curve(Report& report, const PlannedRun& run) {
  std::vector<Column> columns = {{"op"}, {"operation"}, {"lane"}};
  append(columns, kind_columns());
  columns.push_back({"total_bytes", "total", Style::kBytes});
  Table& curve = report.add_table("curve", std::move(columns));
  for (size_t id = 0; id < run.memory.step.live.size(); ++id) {
    const Op& op = run.plan.step.program.ops[id];
    std::vector<Cell> row = make_row(id, describe(op), to_string(op.lane));
    append_kinds(row, run.memory.step.live[id]);
    row.emplace_back(int64_t(total_of(run.memory.step.live[id])));
    curve.add_row(std::move(row));
  }
}

void add_run_terms(Report& report, const std::vector<PlannedRun>& runs) {
  Table& terms = report.add_table("terms", {{"gpus"},
                                            {"component"},
                                            {"formula"},
                                            {"numbers"},
                                            {"bytes", "bytes", Style::kBytes},
                                            {"source"}});
  for (const auto& [gpus, plan, memory] : runs) {
    for (const Term& term : explain_run(plan, memory))
      terms.add_row(gpus, term.component, term.formula, term.numbers, term.bytes, term.source);
  }
}

void add_run_solutions(Report& report, const Quantity<RunConfig>& quantity,
                       const std::vector<RunSolution>& solutions) {
  Table& results = report.add_table("results", {{"gpus"},
                                                {"setting"},
                                                {"value", "largest"},
                                                {"peak_bytes", "peak", Style::kBytes},
                                                {"next_peak_bytes", "with one more", Style::kBytes},
                                                {"binding", "most of it"}});
  for (const auto& [gpus, largest, too_large] : solutions) {
    const auto most = std::ranges::max_element(too_large.peak) - too_large.peak.begin();
    results.add_row(gpus, quantity.setting,
                    largest.value == 0 ? Cell() : Cell(int64_t{largest.value}),
                    largest.value == 0 ? Cell() : Cell(int64_t(largest.bytes)),
                    total_of(too_large.peak), kMemoryKindNames[size_t(most)]);
  }
}

}  // namespace gxp

#include "cmd/memcalc/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

const std::array<Unit, 4> kUnits = {
    {{"GB", Style::kGB}, {"GiB", Style::kGiB}, {"MB", Style::kMB}, {"MiB", Style::kMiB}}};

template <class Number>
Cell cell_of(const std::optional<Number>& number) {
  if (!number) return std::monostate();
  return int64_t(*number);
}

// With --explain: the table of reasons; `row` are the cells that tell whose they are.
void add_terms(Table* table, const std::vector<Cell>& row, const std::vector<Term>& terms) {
  if (table == nullptr) return;
  for (const Term& term : terms) {
    std::vector<Cell> cells = row;
    cells.insert(cells.end(),
                 {term.component, term.formula, term.numbers, int64_t(term.bytes), term.source});
    table->add_row(std::move(cells));
  }
}

Table* make_terms(Report& report, const MemcalcView& view, bool with_options) {
  if (!view.explain) return nullptr;
  std::vector<Column> columns = {{"gpus"}, {"stage"}};
  if (with_options) columns.push_back({"options"});
  columns.insert(columns.end(), {{"component"},
                                 {"formula"},
                                 {"numbers"},
                                 {"bytes", view.unit.name, view.unit.style},
                                 {"source"}});
  return &report.add_table("terms", std::move(columns));
}

void add_fits(std::vector<Cell>& row, uint64_t bytes, const MemcalcView& view) {
  if (view.limit_bytes) row.emplace_back(bytes <= *view.limit_bytes);
}

std::vector<Column> state_columns(const EstimateQuestion& question, const MemcalcView& view) {
  const Unit& unit = view.unit;
  std::vector<Column> columns = {{"gpus"},
                                 {"stage"},
                                 bytes_column("parameters_bytes", "parameters", unit),
                                 bytes_column("gradients_bytes", "gradients", unit),
                                 bytes_column("master_weights_bytes", "master weights", unit),
                                 bytes_column("moments_bytes", "moments", unit),
                                 bytes_column("optimizer_bytes", "optimizer", unit)};
  if (question.sequence > 0)
    columns.push_back(bytes_column("activations_bytes", "activations", unit));
  if (question.runtime != nullptr)
    columns.push_back(bytes_column("buffers_bytes", "buffers", unit));
  columns.push_back(bytes_column("total_bytes", "total", unit));
  if (view.limit_bytes) columns.insert(columns.end(), {{"fits"}, {"binding", "most is of"}});
  return columns;
}

void add_changes(Report& report, const EstimateQuestion& question, const MemcalcView& view) {
  const uint64_t now = estimate(question).total();
  if (now <= *view.limit_bytes) return;
  Table& table = report.add_table("changes", {{"change", "change that makes it fit"},
                                              bytes_column("total_bytes", "total", view.unit),
                                              bytes_column("saved_bytes", "saved", view.unit)});
  for (const EstimateChange& change : changes_that_fit(question, *view.limit_bytes))
    table.add_row({change.what, int64_t(change.bytes), int64_t(now - change.bytes)});
}

}  // namespace

Column bytes_column(const char* key, const char* heading, const Unit& unit) {
  return {key, fmt::format("{} {}", heading, unit.name), unit.style};
}

Unit find_unit(const std::string& name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return unit;
  }
  fail(ErrorKind::kUsage,
       "--unit '{}' is unknown; use GB or MB (powers of 1000), GiB or MiB (powers of 1024)", name);
}

void add_estimates(Report& report, const std::vector<EstimateQuestion>& questions,
                   const MemcalcView& view) {
  Table& results = report.add_table("results", state_columns(questions.front(), view));
  Table* terms = make_terms(report, view, false);
  for (const EstimateQuestion& question : questions) {
    const Estimate bytes = estimate(question);
    const ModelStates& states = bytes.states;
    const std::vector<Cell> place = {int64_t{question.placement.gpus},
                                     int64_t{question.placement.stage}};
    std::vector<Cell> row = place;
    for (const uint64_t part : {states.parameters, states.gradients, states.master_weights,
                                states.moments, states.optimizer()}) {
      row.emplace_back(int64_t(part));
    }
    if (question.sequence > 0) row.emplace_back(int64_t(sum_of(bytes.activations)));
    if (question.runtime != nullptr) row.emplace_back(int64_t(sum_of(bytes.buffers)));
    row.emplace_back(int64_t(bytes.total()));
    add_fits(row, bytes.total(), view);
    if (view.limit_bytes) row.emplace_back(std::string(bytes.binding()));
    results.add_row(std::move(row));
    for (const auto* part : {&bytes.explained_states, &bytes.activations, &bytes.buffers})
      add_terms(terms, place, *part);
  }
  if (view.limit_bytes && questions.size() == 1) add_changes(report, questions.front(), view);
}

void add_padding(Report& report, const PublishedModel& model, const std::vector<int>& gpus) {
  Table& table =
      report.add_table("padding", {{"gpus"}, {"layout"}, {"elements"}, {"percent"}, {"meaning"}});
  const auto parameters = double(parameter_count(model));
  for (const int ranks : gpus) {
    for (const ShardLayout& layout : shard_layouts()) {
      const uint64_t added = layout.padding(model, uint64_t(ranks));
      table.add_row({int64_t{ranks}, std::string(layout.name), int64_t(added),
                     100 * double(added) / parameters, std::string(layout.meaning)});
    }
  }
}

void add_answers(Report& report, const Tool& tool, const std::vector<Question>& questions,
                 const MemcalcView& view) {
  std::vector<Column> columns = {{"gpus"},
                                 {"stage"},
                                 {"options"},
                                 bytes_column("total_bytes", "per GPU", view.unit),
                                 bytes_column("host_bytes", "per host", view.unit),
                                 {"printed", "as the tool prints it"}};
  if (view.limit_bytes) columns.push_back({"fits"});
  Table& results = report.add_table("results", std::move(columns));
  Table* terms = make_terms(report, view, true);
  for (const Question& question : questions) {
    for (const ToolEstimate& answer : ask(tool, question)) {
      const std::vector<Cell> place = {int64_t{question.gpus}, int64_t{question.stage},
                                       answer.options};
      std::vector<Cell> row = place;
      row.emplace_back(int64_t(answer.gpu_bytes));
      row.push_back(cell_of(answer.host_bytes));
      row.emplace_back(answer.printed);
      add_fits(row, answer.gpu_bytes, view);
      results.add_row(std::move(row));
      add_terms(terms, place, answer.terms);
    }
  }
}

}  // namespace gxp

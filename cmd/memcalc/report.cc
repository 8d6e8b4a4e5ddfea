#include "cmd/memcalc/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cmd/plan_options.h"
#include "lib/base/error.h"
#include "lib/tools/planner/search.h"

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

std::vector<Column> memory_columns(bool states_alone, const MemcalcView& view) {
  const Unit& unit = view.unit;
  std::vector<Column> columns = {{"gpus"},
                                 {"stage"},
                                 bytes_column("parameters_bytes", "parameters", unit),
                                 bytes_column("gradients_bytes", "gradients", unit),
                                 bytes_column("master_weights_bytes", "master weights", unit),
                                 bytes_column("moments_bytes", "moments", unit),
                                 bytes_column("optimizer_bytes", "optimizer", unit)};
  if (!states_alone)
    columns.insert(columns.end(), {bytes_column("activations_bytes", "activations", unit),
                                   bytes_column("logits_bytes", "logits", unit),
                                   bytes_column("buffers_bytes", "buffers", unit),
                                   bytes_column("context_bytes", "context", unit)});
  columns.push_back(bytes_column("total_bytes", "total", unit));
  if (view.limit_bytes) columns.insert(columns.end(), {{"fits"}, {"binding", "largest part"}});
  return columns;
}

void add_changes(Report& report, const TrainCase& question, const MemcalcView& view) {
  const uint64_t now = predict_memory(question).total();
  if (now <= *view.limit_bytes) return;
  Table& table = report.add_table("changes", {{"change", "change that makes it fit"},
                                              bytes_column("total_bytes", "total", view.unit),
                                              bytes_column("saved_bytes", "saved", view.unit)});
  table.when_empty = kNothingFits;
  for (const auto& way : plans_that_fit(question, *view.limit_bytes))
    table.add_row(to_options(way.changes), way.cost.bytes, int64_t(now) - int64_t(way.cost.bytes));
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

void add_memory(Report& report, const std::vector<TrainCase>& cases, const MemcalcView& view) {
  const bool states_alone = cases.front().plan.sequence == 0;
  Table& results = report.add_table("results", memory_columns(states_alone, view));
  Table* terms = make_terms(report, view, false);
  for (const TrainCase& question : cases) {
    const PlanMemory memory = predict_memory(question);
    const ModelStates& states = memory.states;
    std::vector<uint64_t> bytes = {states.parameters, states.gradients, states.master_weights,
                                   states.moments, states.optimizer()};
    if (!states_alone)
      bytes.insert(bytes.end(),
                   {memory.activations, memory.logits, memory.buffers, memory.context});
    bytes.push_back(memory.total());
    const std::vector<Cell> place = make_row(question.plan.gpus, question.plan.stage);
    std::vector<Cell> row = place;
    for (const uint64_t part : bytes) row.emplace_back(int64_t(part));
    add_fits(row, memory.total(), view);
    if (view.limit_bytes) row.emplace_back(std::string(binding_part(memory)));
    results.add_row(std::move(row));
    add_terms(terms, place, explain_memory(question));
  }
  if (view.limit_bytes && cases.size() == 1) add_changes(report, cases.front(), view);
}

void add_padding(Report& report, const PublishedModel& model, const std::vector<int>& gpus) {
  Table& table =
      report.add_table("padding", {{"gpus"}, {"layout"}, {"elements"}, {"percent"}, {"meaning"}});
  const auto parameters = double(parameter_count(model));
  for (const int ranks : gpus) {
    for (const ShardLayout& layout : shard_layouts()) {
      const uint64_t added = layout.padding(model, uint64_t(ranks));
      table.add_row(ranks, layout.name, added, 100 * double(added) / parameters, layout.meaning);
    }
  }
}

void add_answers(Report& report, const Calculator& calculator,
                 const std::vector<CalculatorInput>& inputs, const MemcalcView& view) {
  std::vector<Column> columns = {{"gpus"},
                                 {"stage"},
                                 {"options"},
                                 bytes_column("total_bytes", "per GPU", view.unit),
                                 bytes_column("host_bytes", "per host", view.unit),
                                 {"printed", "as the tool prints it"}};
  if (view.limit_bytes) columns.push_back({"fits"});
  Table& results = report.add_table("results", std::move(columns));
  Table* terms = make_terms(report, view, true);
  for (const CalculatorInput& input : inputs) {
    for (const CalculatorAnswer& answer : ask(calculator, input)) {
      const std::vector<Cell> place = make_row(input.gpus, input.stage, answer.options);
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

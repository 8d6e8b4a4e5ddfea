#include "cmd/memcalc_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

const std::array<Unit, 4> kUnits = {
    {{"GB", Style::kGB}, {"GiB", Style::kGiB}, {"MB", Style::kMB}, {"MiB", Style::kMiB}}};

Column bytes_column(const char* key, const char* heading, const Unit& unit) {
  return {key, fmt::format("{} {}", heading, unit.name), unit.style};
}

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

std::vector<Column> state_columns(const MemcalcView& view) {
  const Unit& unit = view.unit;
  std::vector<Column> columns = {{"gpus"},
                                 {"stage"},
                                 bytes_column("parameters_bytes", "parameters", unit),
                                 bytes_column("gradients_bytes", "gradients", unit),
                                 bytes_column("master_weights_bytes", "master weights", unit),
                                 bytes_column("moments_bytes", "moments", unit),
                                 bytes_column("optimizer_bytes", "optimizer", unit)};
  if (!view.activations.empty())
    columns.push_back(bytes_column("activations_bytes", "activations", unit));
  if (view.runtime != nullptr) columns.push_back(bytes_column("buffers_bytes", "buffers", unit));
  columns.push_back(bytes_column("total_bytes", "total", unit));
  if (view.limit_bytes) columns.insert(columns.end(), {{"fits"}, {"binding", "most is of"}});
  return columns;
}

uint64_t sum_of(const std::vector<Term>& terms) {
  uint64_t bytes = 0;
  for (const Term& term : terms) bytes += term.bytes;
  return bytes;
}

std::string largest_of(const ModelStates& states, uint64_t activations, uint64_t buffers) {
  const std::array<std::pair<uint64_t, const char*>, 5> parts = {{{states.parameters, "parameters"},
                                                                  {states.gradients, "gradients"},
                                                                  {states.optimizer(), "optimizer"},
                                                                  {activations, "activations"},
                                                                  {buffers, "buffers"}}};
  return std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; })->second;
}

std::vector<Term> buffers_of(const Training& training, const Placement& placement,
                             const MemcalcView& view) {
  if (view.runtime == nullptr) return {};
  return view.runtime->buffers({training.parameters, view.block, training.precision, placement});
}

}  // namespace

Unit find_unit(const std::string& name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return unit;
  }
  fail(ErrorKind::kUsage,
       "--unit '{}' is unknown; use GB or MB (powers of 1000), GiB or MiB (powers of 1024)", name);
}

void add_model_states(Report& report, const Training& training,
                      const std::vector<Placement>& placements, const MemcalcView& view) {
  Table& results = report.add_table("results", state_columns(view));
  Table* terms = make_terms(report, view, false);
  const auto parts = uint64_t(view.model_parallel);
  Training each = training;
  each.parameters = (training.parameters + parts - 1) / parts;
  for (const Placement& all : placements) {
    Placement placement = all;
    placement.gpus /= view.model_parallel;
    const ModelStates states = model_states(each, placement);
    const std::vector<Term> buffers = buffers_of(each, placement, view);
    const std::vector<Cell> place = {int64_t{all.gpus}, int64_t{all.stage}};
    std::vector<Cell> row = place;
    for (const uint64_t bytes : {states.parameters, states.gradients, states.master_weights,
                                 states.moments, states.optimizer()}) {
      row.emplace_back(int64_t(bytes));
    }
    if (!view.activations.empty()) row.emplace_back(int64_t(sum_of(view.activations)));
    if (view.runtime != nullptr) row.emplace_back(int64_t(sum_of(buffers)));
    const uint64_t total = states.total() + sum_of(view.activations) + sum_of(buffers);
    row.emplace_back(int64_t(total));
    add_fits(row, total, view);
    if (view.limit_bytes)
      row.emplace_back(largest_of(states, sum_of(view.activations), sum_of(buffers)));
    results.add_row(std::move(row));
    add_terms(terms, place, explain_model_states(each, placement));
    add_terms(terms, place, view.activations);
    add_terms(terms, place, buffers);
  }
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
    for (const Answer& answer : ask(tool, question)) {
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

void add_least_gpus(Report& report, const Training& training, const std::vector<int>& stages,
                    const MemcalcView& view) {
  Table& results = report.add_table(
      "results", {{"stage"}, {"gpus"}, bytes_column("total_bytes", "total", view.unit), {"fits"}});
  for (const int stage : stages) {
    const std::optional<int> gpus = least_gpus(training, stage, *view.limit_bytes);
    const Placement placement{.stage = stage, .gpus = gpus.value_or(kMostGpus)};
    results.add_row({int64_t{stage}, cell_of(gpus),
                     int64_t(model_states(training, placement).total()), gpus.has_value()});
  }
}

}  // namespace gxp

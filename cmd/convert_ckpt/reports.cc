#include "cmd/convert_ckpt/reports.h"

#include <algorithm>
#include <set>

#include "lib/base/text/joined.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "lib/ckpt/peft/peft.h"
#include "lib/config/strategy.h"

namespace gxp {
namespace {

std::vector<int64_t> sizes_of(const std::vector<uint64_t>& shape) {
  return {shape.begin(), shape.end()};
}

// Row and column of an element, and so on.
std::vector<int64_t> place_of(uint64_t element, const std::vector<uint64_t>& shape) {
  std::vector<int64_t> place(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= shape[d])
    place[d] = int64_t(element % shape[d]);
  return place;
}

// "adam_m, adam_v", or "none".
std::string optimizer_state_of(const NamedTensors& tensors) {
  std::set<std::string_view> roles;
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.role != Role::kWeight) roles.insert(to_string(tensor.info.role));
  }
  return roles.empty() ? "none" : joined(roles, ", ");
}

std::vector<Cell> to_row(const TensorComparison& comparison) {
  const TensorInfo& a = comparison.a;
  const TensorInfo& b = comparison.b;
  std::vector<Cell> row =
      make_row(a.name, to_string(a.role), to_string(comparison.likeness), sizes_of(a.shape),
               a.shape == b.shape ? Cell() : sizes_of(b.shape), to_string(a.dtype),
               a.dtype == b.dtype ? Cell() : std::string(to_string(b.dtype)), comparison.differing,
               comparison.first ? place_of(*comparison.first, a.shape) : Cell());
  std::vector<Cell> numbers(5);
  if (const auto& distance = comparison.distance; distance && comparison.first)
    numbers = {distance->first_a, distance->first_b, distance->max_absolute,
               distance->mean_absolute, distance->max_relative};
  row.insert(row.end(), numbers.begin(), numbers.end());
  return row;
}

}  // namespace

void add_checkpoint_facts(const NamedTensors& tensors, Report& report) {
  const auto add = [&](const char* key, Cell value) {
    report.facts.push_back({{key}, std::move(value)});
  };
  add("format", tensors.format);
  if (tensors.step) add("step", int64_t(*tensors.step));
  if (tensors.samples_consumed) add("samples_consumed", int64_t(*tensors.samples_consumed));
  if (tensors.world_size) add("world_size", int64_t{*tensors.world_size});
  if (!tensors.strategy.empty()) add("strategy", tensors.strategy);
  if (const auto stage = stage_of(tensors.strategy)) add("stage", int64_t{*stage});
}

void add_inspection(const NamedTensors& tensors, bool hash, Report& report) {
  std::vector<Column> columns = {
      {"name"}, {"role"}, {"shape"}, {"dtype"}, {"bytes", "size", Style::kBytes}};
  if (hash) columns.push_back({"sha256"});
  Table& table = report.add_table("tensors", std::move(columns));
  uint64_t bytes = 0, parameters = 0;
  for (const NamedTensor& tensor : tensors.tensors) {
    const TensorInfo& info = tensor.info;
    std::vector<Cell> row = make_row(info.name, to_string(info.role), sizes_of(info.shape),
                                     to_string(info.dtype), info.bytes());
    if (hash) row.emplace_back(sha256_hex(tensor));
    table.add_row(std::move(row));
    bytes += info.bytes();
    if (info.role == Role::kWeight) parameters += info.count();
  }
  report.facts.push_back({{"tensor_count", "tensors"}, int64_t(tensors.tensors.size())});
  report.facts.push_back({{"parameters", "elements of weights"}, int64_t(parameters)});
  report.facts.push_back({{"total_bytes", "size", Style::kBytes}, int64_t(bytes)});
  report.facts.push_back({{"optimizer_state", "optimizer state"}, optimizer_state_of(tensors)});
  if (const std::string family = family_told(tensors.config); !family.empty())
    report.facts.push_back({{"model"}, family});
  if (const std::string problem = model_problem(without_adapters(tensors)); !problem.empty())
    report.facts.push_back({{"model_problem", "gxp does not train it"}, problem});
}

void add_plan(const std::vector<PlannedFile>& files, Report& report) {
  Table& table =
      report.add_table("files", {{"file"}, {"tensors"}, {"bytes", "size", Style::kBytes}});
  uint64_t bytes = 0;
  for (const PlannedFile& file : files) {
    table.add_row(file.name, file.tensors, file.bytes);
    bytes += file.bytes.value_or(0);
  }
  report.facts.push_back({{"planned_bytes", "would write", Style::kBytes}, int64_t(bytes)});
}

void add_comparison(const std::vector<TensorComparison>& rows, Report& report) {
  const auto add_count = [&](const char* key, const char* heading, auto... likeness) {
    const auto counts = [&](const TensorComparison& row) {
      return ((row.likeness == likeness) || ...);
    };
    report.facts.push_back({{key, heading}, int64_t(std::ranges::count_if(rows, counts))});
  };
  add_count("equal", "equal tensors", Likeness::kEqual);
  add_count("differing", "tensors that differ", Likeness::kValues, Likeness::kDType,
            Likeness::kShape);
  add_count("only_first", "tensors only in the first", Likeness::kOnlyFirst);
  add_count("only_second", "tensors only in the second", Likeness::kOnlySecond);
  Table& table = report.add_table("tensors", {{"name"},
                                              {"role"},
                                              {"result"},
                                              {"shape"},
                                              {"second_shape", "second's"},
                                              {"dtype"},
                                              {"second_dtype", "second's"},
                                              {"elements_differing", "differing"},
                                              {"first_at", "first at"},
                                              {"first_a", "first's"},
                                              {"first_b", "second's"},
                                              {"max_absolute", "max abs"},
                                              {"mean_absolute", "mean abs"},
                                              {"max_relative", "max rel"}});
  for (const TensorComparison& row : rows) table.add_row(to_row(row));
}

}  // namespace gxp

#include "lib/ckpt/torch/optimizer_state.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lib/ckpt/torch/optimizer_settings.h"

namespace gxp {
namespace {

using OptimizerShape = std::vector<uint64_t>;

// What is kept of one parameter.
struct KeptOfParameter {
  std::string name;  // "" until it is known
  std::vector<NamedTensor> tensors;
  std::optional<OptimizerShape> shape;  // the parameter's, if that can be told
  std::optional<uint64_t> step;
};

// One group: its parameters in order, and their names, if it tells them.
struct OptimizerGroup {
  std::vector<int64_t> parameters;  // none if the names stand for them
  std::vector<std::string> names;
  std::optional<uint64_t> step = {};  // of Apex's FusedAdam, whose parameters have none
  ParameterGroup record = {};         // without names
};

bool has_gradients(const OptimizerWeight& weight) {
  const std::string_view name = weight.info.name;
  switch (weight.info.dtype) {
    case StorageDType::kF64:
    case StorageDType::kF32:
    case StorageDType::kF16:
    case StorageDType::kBF16:
    case StorageDType::kC64:
      break;
    default:
      return false;
  }
  return !weight.is_tied && !name.ends_with("running_mean") && !name.ends_with("running_var");
}

// The number in a tensor of one element, or a Python number.
std::optional<double> read_step_of(const TorchArchive& archive, PickleValue value,
                                   const std::string& name) {
  if (value.is(PickleKind::kInteger)) return double(value.integer());
  if (value.is(PickleKind::kFloat)) return value.real();
  if (!is_tensor(value)) return std::nullopt;
  const NamedTensor tensor = archive.tensor(value, name);
  if (tensor.info.count() != 1) return std::nullopt;
  const auto read = [&](auto number) {
    tensor.read(0, {reinterpret_cast<std::byte*>(&number), sizeof(number)});
    return double(number);
  };
  if (tensor.info.dtype == StorageDType::kF32) return read(float{});
  if (tensor.info.dtype == StorageDType::kF64) return read(double{});
  if (tensor.info.dtype == StorageDType::kI64) return read(int64_t{});
  return std::nullopt;
}

class OptimizerReader {
 public:
  OptimizerReader(const TorchArchive& archive, std::string where)
      : archive_(archive), where_(std::move(where)) {}

  // One entry of "state".
  KeptOfParameter read_entry(PickleValue entry, const std::string& label);
  // What none of the entries was asked for.
  void finish(OptimizerRecord& record) const {
    for (const std::string& key : left_out_)
      record.lost.push_back(fmt::format("{} of parameters", key));
  }

 private:
  const TorchArchive& archive_;
  std::string where_;
  std::set<std::string> left_out_;
};

KeptOfParameter OptimizerReader::read_entry(PickleValue entry, const std::string& label) {
  const std::string where = fmt::format("{}: state of parameter {}", where_, label);
  KeptOfParameter kept;
  for (const OptimizerKey& row : kOptimizerKeys) {
    const auto value = find_member(entry, row.key, where);
    if (!value || value->is_none()) continue;
    kept.tensors.push_back(
        archive_.tensor(*value, fmt::format("{} of parameter {}", row.key, label), row.role));
    if (row.role != Role::kRowMeans && row.role != Role::kColumnMeans)
      kept.shape = kept.tensors.back().info.shape;
  }
  for (size_t i = 0; i < entry.size(); ++i) {
    const std::string key = to_text(entry.key(i), where);
    if (key == "step") {
      kept.step = whole_step(read_step_of(archive_, entry.value(i), key));
      if (!kept.step) left_out_.insert("a step that is no whole number");
    } else if (std::ranges::find(kOptimizerKeys, key, &OptimizerKey::key) == kOptimizerKeys.end()) {
      // Of an optimizer that keeps a part of it only sometimes.
      if (!entry.value(i).is_none()) left_out_.insert(key);
    }
  }
  return kept;
}

// "params" are numbers, with names beside them or not, or names.
OptimizerGroup read_group(PickleValue group, std::vector<std::string>& lost,
                          const std::string& where) {
  OptimizerGroup result;
  result.record = read_parameter_group(group, lost, where);
  if (const auto step = find_member(group, "step", where); step && step->is(PickleKind::kInteger))
    result.step = whole_step(double(step->integer()));
  const PickleValue parameters = to_sequence(member(group, "params", where), where + ": params");
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters.item(i).is(PickleKind::kText))
      result.names.emplace_back(parameters.item(i).text());
    else
      result.parameters.push_back(int64_t(to_unsigned(parameters.item(i), where + ": params")));
  }
  const auto names = find_member(group, "param_names", where);
  if (!names || names->is_none() || result.parameters.empty()) return result;
  const PickleValue list = to_sequence(*names, where + ": param_names");
  for (size_t i = 0; i < list.size(); ++i)
    result.names.push_back(to_text(list.item(i), where + ": param_names"));
  if (result.names.size() != result.parameters.size())
    fail(ErrorKind::kCorrupt, "{}: {} params, but {} param_names", where, result.parameters.size(),
         result.names.size());
  return result;
}

std::vector<OptimizerGroup> read_groups(PickleValue optimizer, std::vector<std::string>& lost,
                                        const std::string& where) {
  const auto found = find_member(optimizer, "param_groups", where);
  if (!found) return {};
  const PickleValue list = to_sequence(*found, where);
  std::vector<OptimizerGroup> groups;
  for (size_t i = 0; i < list.size(); ++i)
    groups.push_back(
        read_group(to_dict(list.item(i), where), lost, fmt::format("{}: group {}", where, i)));
  return groups;
}

// For each wanted shape (nothing: any) the index of an offered one, in the same order, if there is
// exactly one way: then the earliest and the latest choice are the same.
std::optional<std::vector<size_t>> match_in_order(
    const std::vector<std::optional<OptimizerShape>>& wanted,
    const std::vector<OptimizerShape>& offered) {
  const auto fits_at = [&](size_t i, size_t k) { return !wanted[i] || *wanted[i] == offered[k]; };
  std::vector<size_t> earliest, latest(wanted.size());
  for (size_t k = 0; k < offered.size() && earliest.size() < wanted.size(); ++k)
    if (fits_at(earliest.size(), k)) earliest.push_back(k);
  if (earliest.size() < wanted.size()) return std::nullopt;
  size_t left = wanted.size();
  for (size_t k = offered.size(); k-- > 0 && left > 0;)
    if (fits_at(left - 1, k)) latest[--left] = k;
  if (earliest != latest) return std::nullopt;
  return earliest;
}

// The parameters of "state" by their indices.
using KeptByIndex = std::map<int64_t, KeptOfParameter>;

// Names the parameters of a group by the weights in their order. Returns why not, "" if so.
std::string name_by_order(OptimizerGroup& group, const std::vector<OptimizerWeight>& weights,
                          const KeptByIndex& kept) {
  std::vector<std::optional<OptimizerShape>> wanted;
  for (const int64_t index : group.parameters) {
    const auto found = kept.find(index);
    wanted.push_back(found == kept.end() ? std::nullopt : found->second.shape);
  }
  std::vector<std::string> names;
  std::vector<OptimizerShape> offered;
  for (const OptimizerWeight& weight : weights) {
    if (!has_gradients(weight)) continue;
    names.push_back(weight.info.name);
    offered.push_back(weight.info.shape);
  }
  const auto match = match_in_order(wanted, offered);
  if (!match)
    return fmt::format(
        "the {} parameters of a group cannot be matched to {} weights by order and shape",
        wanted.size(), offered.size());
  for (const size_t place : *match) group.names.push_back(names[place]);
  return "";
}

// Gives all groups and what is kept the names of their parameters. Returns why they cannot be told,
// "" if they can.
std::string name_parameters(std::vector<OptimizerGroup>& groups,
                            const std::vector<OptimizerWeight>& weights, KeptByIndex& kept,
                            const std::string& where) {
  std::set<std::string> taken;
  std::set<int64_t> seen;
  for (OptimizerGroup& group : groups) {
    for (const int64_t index : group.parameters)
      if (!seen.insert(index).second)
        fail(ErrorKind::kCorrupt, "{}: parameter {} is in two groups", where, index);
    const bool by_order = group.names.empty();
    if (by_order) {
      const std::string problem = name_by_order(group, weights, kept);
      if (!problem.empty()) return problem;
    }
    for (size_t i = 0; i < group.names.size(); ++i) {
      const bool is_new = taken.insert(group.names[i]).second;
      if (!is_new && by_order) return fmt::format("'{}' could be in two groups", group.names[i]);
      if (!is_new)
        fail(ErrorKind::kCorrupt, "{}: parameter '{}' is in two groups", where, group.names[i]);
      if (i >= group.parameters.size()) continue;
      if (const auto found = kept.find(group.parameters[i]); found != kept.end())
        found->second.name = group.names[i];
    }
  }
  for (const auto& [index, parameter] : kept)
    if (parameter.name.empty()) return fmt::format("parameter {} is in no group", index);
  return "";
}

// Moments have their parameter's shape.
void check_shapes(const KeptOfParameter& kept, const std::vector<OptimizerWeight>& weights,
                  const std::string& where) {
  const auto weight = std::ranges::find(
      weights, kept.name, [](const OptimizerWeight& w) -> std::string_view { return w.info.name; });
  if (!kept.shape || weight == weights.end() || weight->info.shape == *kept.shape) return;
  fail(ErrorKind::kCorrupt, "{}: the state of '{}' has another shape than the weight", where,
       kept.name);
}

// Gives parameters without a step their group's.
void take_group_steps(const std::vector<OptimizerGroup>& groups,
                      std::vector<KeptOfParameter>& kept) {
  std::map<std::string_view, uint64_t> steps;
  for (const OptimizerGroup& group : groups)
    for (const std::string& name : group.names)
      if (group.step) steps.emplace(name, *group.step);
  for (KeptOfParameter& parameter : kept)
    if (const auto found = steps.find(parameter.name); !parameter.step && found != steps.end())
      parameter.step = found->second;
}

void take_tensors(KeptOfParameter& kept, std::vector<NamedTensor>& tensors) {
  for (NamedTensor& tensor : kept.tensors) {
    tensor.info.name = kept.name;
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace

std::optional<uint64_t> whole_step(std::optional<double> step) {
  if (!step || !(*step >= 0) || *step >= 0x1p53 || std::floor(*step) != *step) return std::nullopt;
  return uint64_t(*step);
}

OptimizerTensors read_optimizer_state(const TorchArchive& archive, PickleValue optimizer,
                                      const std::vector<OptimizerWeight>& weights,
                                      const std::string& where) {
  const PickleValue state = to_dict(member(optimizer, "state", where), where + ": state");
  OptimizerReader reader(archive, where);
  std::vector<KeptOfParameter> named;
  KeptByIndex kept;
  for (size_t i = 0; i < state.size(); ++i) {
    const bool has_name = state.key(i).is(PickleKind::kText);
    const std::string label = has_name ? std::string(state.key(i).text())
                                       : fmt::format("{}", to_unsigned(state.key(i), where));
    KeptOfParameter entry = reader.read_entry(to_dict(state.value(i), where), label);
    entry.name = has_name ? label : "";
    if (has_name) {
      named.push_back(std::move(entry));
    } else if (!kept.emplace(state.key(i).integer(), std::move(entry)).second) {
      fail(ErrorKind::kCorrupt, "{}: parameter {} occurs twice", where, label);
    }
  }
  OptimizerTensors result;
  reader.finish(result.record);
  std::vector<OptimizerGroup> groups = read_groups(optimizer, result.record.lost, where);
  const std::string problem = name_parameters(groups, weights, kept, where);
  if (!problem.empty()) {
    result.record.lost.push_back(
        fmt::format("the parameters of its optimizer state: {} (construct the optimizer from "
                    "named_parameters(), torch 2.6 or newer, which records names)",
                    problem));
    return result;
  }
  for (auto& [index, parameter] : kept) named.push_back(std::move(parameter));
  take_group_steps(groups, named);
  for (OptimizerGroup& group : groups) {
    group.record.names = std::move(group.names);
    result.record.groups.push_back(std::move(group.record));
  }
  for (KeptOfParameter& parameter : named) {
    check_shapes(parameter, weights, where);
    if (parameter.step) result.record.steps.emplace(parameter.name, *parameter.step);
    take_tensors(parameter, result.tensors);
  }
  return result;
}

}  // namespace gxp

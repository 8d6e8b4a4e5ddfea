#include "lib/ckpt/torch/optimizer_state.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace gxp {
namespace {

using OptimizerShape = std::vector<uint64_t>;

// What is kept of one parameter.
struct KeptOfParameter {
  std::string name;  // "" until it is known
  std::vector<NamedTensor> tensors;
  std::optional<OptimizerShape> shape;  // the parameter's, if that can be told
};

// One group: its parameters in order, and their names, if it tells them.
struct OptimizerGroup {
  std::vector<int64_t> parameters;
  std::vector<std::string> names;
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
  // The step that all entries had, and what none of them was asked for.
  void finish(OptimizerTensors& result) const;

 private:
  const TorchArchive& archive_;
  std::string where_;
  std::set<double> steps_;
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
      if (const auto step = read_step_of(archive_, entry.value(i), key)) steps_.insert(*step);
    } else if (std::ranges::find(kOptimizerKeys, key, &OptimizerKey::key) == kOptimizerKeys.end()) {
      left_out_.insert(key);
    }
  }
  return kept;
}

void OptimizerReader::finish(OptimizerTensors& result) const {
  result.left_out.assign(left_out_.begin(), left_out_.end());
  // Beyond 2^53 a double does not count.
  if (steps_.size() == 1 && *steps_.begin() >= 0 && *steps_.begin() < 0x1p53 &&
      std::floor(*steps_.begin()) == *steps_.begin())
    result.step = uint64_t(*steps_.begin());
}

OptimizerGroup read_group(PickleValue group, const std::string& where) {
  OptimizerGroup result;
  const PickleValue parameters = to_sequence(member(group, "params", where), where + ": params");
  for (size_t i = 0; i < parameters.size(); ++i)
    result.parameters.push_back(int64_t(to_unsigned(parameters.item(i), where + ": params")));
  const auto names = find_member(group, "param_names", where);
  if (!names || names->is_none()) return result;
  const PickleValue list = to_sequence(*names, where + ": param_names");
  for (size_t i = 0; i < list.size(); ++i)
    result.names.push_back(to_text(list.item(i), where + ": param_names"));
  if (result.names.size() != result.parameters.size())
    fail(ErrorKind::kCorrupt, "{}: {} params, but {} param_names", where, result.parameters.size(),
         result.names.size());
  return result;
}

std::vector<OptimizerGroup> read_groups(PickleValue optimizer, const std::string& where) {
  const PickleValue list = to_sequence(member(optimizer, "param_groups", where), where);
  std::vector<OptimizerGroup> groups;
  for (size_t i = 0; i < list.size(); ++i)
    groups.push_back(
        read_group(to_dict(list.item(i), where), fmt::format("{}: group {}", where, i)));
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
std::string name_by_order(const OptimizerGroup& group, const std::vector<OptimizerWeight>& weights,
                          std::set<std::string>& taken, KeptByIndex& kept) {
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
        "{} parameters of a group do not tell by order and shape which of "
        "{} weights they are",
        wanted.size(), offered.size());
  for (size_t i = 0; i < match->size(); ++i) {
    const std::string& name = names[(*match)[i]];
    if (!taken.insert(name).second) return fmt::format("two groups may have '{}'", name);
    if (const auto found = kept.find(group.parameters[i]); found != kept.end())
      found->second.name = name;
  }
  return "";
}

// Returns why the names cannot be told, "" if they can.
std::string name_parameters(const std::vector<OptimizerGroup>& groups,
                            const std::vector<OptimizerWeight>& weights, KeptByIndex& kept,
                            const std::string& where) {
  std::set<std::string> taken;
  std::set<int64_t> seen;
  for (const OptimizerGroup& group : groups) {
    for (const int64_t index : group.parameters)
      if (!seen.insert(index).second)
        fail(ErrorKind::kCorrupt, "{}: parameter {} is in two groups", where, index);
    if (group.names.empty()) {
      const std::string problem = name_by_order(group, weights, taken, kept);
      if (!problem.empty()) return problem;
    }
    for (size_t i = 0; i < group.names.size(); ++i) {
      if (!taken.insert(group.names[i]).second)
        fail(ErrorKind::kCorrupt, "{}: parameter '{}' is in two groups", where, group.names[i]);
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

void take_tensors(KeptOfParameter& kept, std::vector<NamedTensor>& tensors) {
  for (NamedTensor& tensor : kept.tensors) {
    tensor.info.name = kept.name;
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace

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
  reader.finish(result);
  if (!kept.empty())
    result.problem = name_parameters(read_groups(optimizer, where), weights, kept, where);
  if (!result.problem.empty()) return result;
  for (auto& [index, parameter] : kept) named.push_back(std::move(parameter));
  for (KeptOfParameter& parameter : named) {
    check_shapes(parameter, weights, where);
    take_tensors(parameter, result.tensors);
  }
  return result;
}

}  // namespace gxp

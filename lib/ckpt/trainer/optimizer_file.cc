#include "lib/ckpt/trainer/optimizer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "lib/ckpt/huggingface/parameter_order.h"
#include "lib/ckpt/torch/dcp.h"
#include "lib/ckpt/torch/pt_file.h"

namespace gxp {
namespace {

bool has_names(PickleValue optimizer, const std::string& where) {
  const PickleValue state = to_dict(member(optimizer, "state", where), where);
  if (state.size() > 0 && state.key(0).is(PickleKind::kText)) return true;
  const auto groups = find_member(optimizer, "param_groups", where);
  if (!groups || to_sequence(*groups, where).size() == 0) return false;
  const auto names = find_member(to_dict(groups->item(0), where), "param_names", where);
  return names && !names->is_none();
}

using WeightsByName = std::map<std::string_view, const TensorInfo*>;

WeightsByName weights_by_name(const NamedTensors& tensors) {
  WeightsByName weights;
  for (const NamedTensor& tensor : tensors.tensors)
    if (tensor.info.role == Role::kWeight) weights[tensor.info.name] = &tensor.info;
  return weights;
}

// As the optimizer counts them; none if the model is not known.
std::vector<OptimizerWeight> weights_in_order(const NamedTensors& tensors) {
  std::vector<OptimizerWeight> ordered;
  if (family_told(tensors.config).empty()) return ordered;
  const WeightsByName weights = weights_by_name(tensors);
  for (const std::string& name : parameter_order(model_of(tensors.config))) {
    const auto found = weights.find(name);
    if (found != weights.end()) ordered.push_back({*found->second});
  }
  return ordered;
}

// Every tensor is of a weight, and the moments have its shape.
void check_state(const NamedTensors& part, const NamedTensors& tensors, const std::string& path) {
  const WeightsByName weights = weights_by_name(tensors);
  for (const NamedTensor& tensor : part.tensors) {
    const TensorInfo& info = tensor.info;
    const auto weight = weights.find(info.name);
    if (info.role == Role::kWeight || weight == weights.end())
      fail(ErrorKind::kCorrupt, "read {}: '{}' is no parameter of the model beside it", path,
           info.name);
    const bool is_mean = info.role == Role::kRowMeans || info.role == Role::kColumnMeans;
    if (!is_mean && info.shape != weight->second->shape)
      fail(ErrorKind::kCorrupt, "read {}: the {} of '{}' has the shape ({}), the weight ({})", path,
           to_string(info.role), info.name, joined(info.shape, ", "),
           joined(weight->second->shape, ", "));
  }
}

void merge(NamedTensors part, const std::string& path, NamedTensors& tensors) {
  check_state(part, tensors, path);
  std::ranges::move(part.tensors, std::back_inserter(tensors.tensors));
  std::ranges::move(part.config, std::back_inserter(tensors.config));
  std::ranges::move(part.state, std::back_inserter(tensors.state));
  std::ranges::move(tensors.optimizer.lost, std::back_inserter(part.optimizer.lost));
  tensors.optimizer = std::move(part.optimizer);
  if (!tensors.step) tensors.step = part.step;
  if (part.step == tensors.step || !part.step) return settle_steps(tensors);
  // The optimizer's one step is not the checkpoint's.
  for (const NamedTensor& tensor : tensors.tensors)
    if (tensor.info.role == Role::kAdamV) tensors.optimizer.steps[tensor.info.name] = *part.step;
  settle_steps(tensors);
}

void read_optimizer_file(const std::string& path, NamedTensors& tensors) {
  const std::string where = "read " + path;
  const TorchArchive archive = TorchArchive::open(FileRange::open(path));
  const PickleValue optimizer = to_dict(archive.root(), where);
  const std::vector<OptimizerWeight> weights = weights_in_order(tensors);
  if (weights.empty() && !has_names(optimizer, where)) {
    if (tensors.format == "peft")
      tensors.optimizer.lost.push_back(
          fmt::format("{}, which numbers the parameters of adapters", path));
    else
      tensors.optimizer.unnamed = path;
    return;
  }
  NamedTensors part;
  take_pt_optimizer(archive, optimizer, weights, path, part);
  merge(std::move(part), path, tensors);
}

}  // namespace

void add_optimizer_file(const std::string& path, NamedTensors& tensors) {
  try {
    read_optimizer_file(path, tensors);
  } catch (const Error& error) {
    tensors.optimizer.lost.emplace_back(error.what());
  }
}

void add_optimizer_directory(const std::string& path, NamedTensors& tensors) {
  merge(read_dcp(path), path, tensors);
}

void name_optimizer(NamedTensors& tensors) {
  const std::string path = std::exchange(tensors.optimizer.unnamed, "");
  if (!path.empty()) add_optimizer_file(path, tensors);
}

}  // namespace gxp

// Reads universal checkpoints.
#include "lib/ckpt/deepspeed/universal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/deepspeed/model_states.h"
#include "lib/ckpt/deepspeed/optim_states.h"
#include "lib/ckpt/deepspeed/zero_files.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/torch/optimizer_settings.h"
#include "lib/ckpt/torch/optimizer_state.h"
#include "lib/ckpt/torch/torch_archive.h"

namespace gxp {
namespace {

constexpr const char* kLatestUniversal = "latest_universal";
constexpr const char* kOptimizerState = "optimizer_state.pt";

using ShapesByName = std::map<std::string, std::vector<uint64_t>>;

// One file of one parameter.
struct UniversalFile {
  NamedTensor tensor;
  bool is_flat = false;
};

UniversalFile open_universal_file(const std::string& path, const std::string& name, Role role) {
  const std::string where = "read " + path;
  const FileRange range = FileRange::open(path);
  const TorchArchive archive = TorchArchive::open(range);
  const bool is_flat = is_tensor(archive.root());
  const PickleValue value = is_flat ? archive.root() : member(archive.root(), "param", where);
  UniversalFile file{archive.tensor(value, name, role), is_flat};
  const TensorInfo& info = file.tensor.info;
  if (info.bytes() > range.bytes || (is_flat && info.shape.size() != 1))
    fail(ErrorKind::kCorrupt, "{}: a tensor ({}) of {} bytes in a file of {}", where,
         joined(info.shape, ", "), info.bytes(), range.bytes);
  return file;
}

NamedTensor reopened(const std::string& path, const TensorInfo& info) {
  return {info, [path, info](uint64_t begin, Memory out) {
            const NamedTensor now = open_universal_file(path, info.name, info.role).tensor;
            if (now.info.dtype != info.dtype || now.info.count() != info.count())
              fail(ErrorKind::kCorrupt, "read {}: the file has changed since it was opened", path);
            now.read(begin, out);
          }};
}

bool is_like_weight(Role role) { return role != Role::kRowMeans && role != Role::kColumnMeans; }

NamedTensor read_universal_tensor(const std::string& path, const std::string& name, Role role,
                                  const ShapesByName& shapes) {
  const UniversalFile file = open_universal_file(path, name, role);
  TensorInfo info = file.tensor.info;
  const auto shape = shapes.find(name);
  if (shape != shapes.end() && is_like_weight(role)) {
    const bool agrees =
        file.is_flat ? checked_count(shape->second) == info.count() : shape->second == info.shape;
    if (!agrees)
      fail(ErrorKind::kCorrupt, "read {}: the shape is ({}), but ({}) in the model states", path,
           joined(info.shape, ", "), joined(shape->second, ", "));
    info.shape = shape->second;
  } else if (file.is_flat && is_like_weight(role)) {
    fail(ErrorKind::kCorrupt, "read {}: a flat tensor, and no model states record its shape", path);
  }
  return reopened(path, info);
}

std::optional<Role> role_of_key(std::string_view key) {
  if (key == "fp32") return Role::kWeight;
  for (const OptimizerKey& known : kOptimizerKeys)
    if (known.key == key) return known.role;
  return std::nullopt;
}

// What the files of all parameters tell beside tensors.
struct UniversalNotes {
  std::optional<uint64_t> step;  // of all parameters
  std::map<std::string, uint64_t> steps;
  std::set<std::string> left_out;
};

uint64_t read_step_file(const std::string& path) {
  const TorchArchive archive = TorchArchive::open(FileRange::open(path));
  return read_step(archive, archive.root(), "read " + path);
}

void take_universal_parameter(const std::string& directory, const std::string& name,
                              const ShapesByName& shapes, UniversalNotes& notes,
                              std::vector<NamedTensor>& tensors) {
  bool has_weight = false;
  for (const std::string& file : names_in(directory)) {
    if (!file.ends_with(".pt")) continue;
    const std::string path = directory + "/" + file;
    const std::string key = file.substr(0, file.size() - 3);
    const auto role = role_of_key(key);
    if (role) {
      tensors.push_back(read_universal_tensor(path, name, *role, shapes));
      has_weight |= role == Role::kWeight;
    } else if (key == "step") {
      notes.steps[name] = read_step_file(path);
    } else {
      notes.left_out.insert(key);
    }
  }
  if (!has_weight) fail(ErrorKind::kCorrupt, "read {}: fp32.pt is missing", directory);
}

// DeepSpeed counts in global_steps also those that fp16 has skipped, and in these the optimizer's.
void take_steps(std::map<std::string, uint64_t> steps, NamedTensors& result) {
  if (steps.empty() || !result.optimizer.steps.empty()) return;  // or gxp has written them
  const uint64_t first = steps.begin()->second;
  const bool is_one =
      std::ranges::all_of(steps, [&](const auto& entry) { return entry.second == first; });
  if (is_one) {
    result.step = first;
    result.optimizer.steps.clear();
    return;
  }
  result.optimizer.steps = std::move(steps);
  settle_steps(result);
}

// Of optimizer_state.pt: the stage that wrote it, the settings, and stage 3's step.
void take_optimizer_state(const std::string& path, const std::vector<ZeroGroup>& groups,
                          UniversalNotes& notes, NamedTensors& result) {
  if (!path_exists(path)) return;
  const std::string where = "read " + path;
  const TorchArchive archive = TorchArchive::open(FileRange::open(path));
  const PickleValue root = to_dict(archive.root(), where);
  if (const auto stage = find_member(root, "zero_stage", where))
    result.strategy = fmt::format("zero{}", read_zero_stage(*stage, where + ": zero_stage"));
  const auto optimizer = find_member(root, "optimizer_state_dict", where);
  OptimizerGroups settings;
  std::vector<ParameterGroup> told;
  for (const auto& dict : {std::optional(root), optimizer}) {
    const auto list = dict ? find_member(*dict, "param_groups", where) : std::nullopt;
    if (!list) continue;
    settings.add_all(*list, where);
    if (!told.empty()) continue;
    for (size_t g = 0; g < list->size(); ++g)
      told.push_back(read_parameter_group(list->item(g), result.optimizer.lost, where));
  }
  const bool is_gxps = !result.config.empty();
  settings.finish(result);
  if (!is_gxps) keep_groups(std::move(told), groups, where, result);
  if (!notes.steps.empty() || !optimizer) return;
  const PickleValue states = to_dict(member(*optimizer, "state", where), where);
  if (states.size() == 0) return;
  const auto step = find_member(states.value(0), "step", where);
  if (step) notes.step = read_step(archive, *step, where);
}

// One optimizer keeps the same of all parameters of a kind, so one that has a part of what another
// has lacks files. One without any state is frozen.
void check_states(const std::vector<NamedTensor>& tensors, const std::string& zero) {
  std::map<std::string, std::set<Role>> states;  // by parameter
  for (const NamedTensor& tensor : tensors)
    if (tensor.info.role != Role::kWeight) states[tensor.info.name].insert(tensor.info.role);
  std::map<std::set<Role>, std::string> kinds;  // with a parameter of each
  for (const auto& [name, roles] : states) kinds.emplace(roles, name);
  for (const auto& [some, name] : kinds)
    for (const auto& [all, other] : kinds)
      if (some != all && std::ranges::includes(all, some))
        fail(ErrorKind::kCorrupt,
             "read {}/{}: optimizer state is missing here but present for '{}'", zero, name, other);
}

ZeroModel read_universal_model(const std::string& directory) {
  const ZeroFiles files = list_zero_files(directory);
  if (!files.module_states.empty()) return read_model_states({files.module_states}, false);
  if (!files.rank_states.empty()) return read_model_states(files.rank_states, true);
  return {};
}

// What the model states have and the folder has not: all of stage 3's that is not partitioned.
void add_missing(ZeroModel& model, const std::string& zero, std::vector<NamedTensor>& tensors) {
  std::set<std::string> weights;
  for (const NamedTensor& tensor : tensors)
    if (tensor.info.role == Role::kWeight) weights.insert(tensor.info.name);
  for (const ZeroGroup& group : model.groups)
    for (const ZeroParameter& parameter : group)
      if (!weights.contains(parameter.name))
        fail(ErrorKind::kCorrupt, "read {}: parameter '{}' is missing", zero, parameter.name);
  for (NamedTensor& other : model.others)
    if (!weights.contains(other.info.name)) tensors.push_back(std::move(other));
}

}  // namespace

bool is_universal(const std::string& path) {
  try {
    return is_real_directory(path + "/zero") ||
           (path_exists(path + "/" + kLatestUniversal) && !path_exists(path + "/latest"));
  } catch (const Error&) {
    return false;  // another format, or reading it tells
  }
}

NamedTensors read_universal(const std::string& path) {
  const std::string directory =
      is_real_directory(path + "/zero") ? path : tag_directory(path, kLatestUniversal);
  const std::string zero = directory + "/zero";
  ZeroModel model = read_universal_model(directory);
  ShapesByName shapes;
  for (const ZeroGroup& group : model.groups)
    for (const ZeroParameter& parameter : group) shapes[parameter.name] = parameter.shape;
  NamedTensors result = std::move(model.run);
  result.format = "universal";
  UniversalNotes notes;
  std::set<std::string> aliases;
  for (const auto& [alias, owner] : model.shared) aliases.insert(alias);
  for (const std::string& name : names_in(zero)) {
    if (name == kOptimizerState || aliases.contains(name)) continue;
    if (!is_real_directory(zero + "/" + name))
      fail(ErrorKind::kCorrupt, "read {}/{}: not a parameter's directory", zero, name);
    take_universal_parameter(zero + "/" + name, name, shapes, notes, result.tensors);
  }
  take_optimizer_state(zero + "/" + kOptimizerState, model.groups, notes, result);
  if (notes.step) result.step = notes.step;
  take_steps(std::move(notes.steps), result);
  for (const std::string& key : notes.left_out)
    result.optimizer.lost.push_back(fmt::format("{} of parameters", key));
  check_states(result.tensors, zero);
  add_missing(model, zero, result.tensors);
  finish_weights(model, "read " + directory, result.tensors);
  return result;
}

}  // namespace gxp

#include "lib/ckpt/deepspeed/model_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/deepspeed/rank_parts.h"
#include "lib/ckpt/tensor_views.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/ckpt/torch/pt_metadata.h"
#include "lib/ckpt/torch/torch_archive.h"

namespace gxp {
namespace {

constexpr size_t kMaxClientText = 4096;

// One *_model_states.pt.
struct ModelFile {
  TorchArchive archive;
  PickleValue root;
  std::string where;
  uint64_t bytes = 0;
};

ModelFile open_model_file(const std::string& path) {
  const FileRange range = FileRange::open(path);
  TorchArchive archive = TorchArchive::open(range);
  const PickleValue root = archive.root();
  ModelFile file{std::move(archive), root, "read " + path, range.bytes};
  to_dict(root, file.where);
  return file;
}

// Nothing for None as well.
std::optional<PickleValue> optional_member(const ModelFile& file, std::string_view key) {
  const auto found = find_member(file.root, key, file.where);
  return found && !found->is_none() ? found : std::nullopt;
}

ZeroGroup read_shapes(PickleValue dict, const std::string& where) {
  ZeroGroup group;
  to_dict(dict, where);
  for (size_t i = 0; i < dict.size(); ++i) {
    ZeroParameter parameter{.name = to_text(dict.key(i), where), .shape = {}};
    const std::string place = fmt::format("{}: parameter '{}'", where, parameter.name);
    parameter.shape = to_sizes(dict.value(i), place);
    const auto count = checked_count(parameter.shape);
    uint64_t bytes = 0;
    if (!count || __builtin_mul_overflow(*count, 8, &bytes))
      fail(ErrorKind::kCorrupt, "{}: the shape's product exceeds 64 bits", place);
    if (parameter.name.empty() || parameter.name.find('\0') != std::string::npos)
      fail(ErrorKind::kCorrupt, "{}: an empty name, or one with a NUL", place);
    parameter.count = *count;
    group.push_back(std::move(parameter));
  }
  return group;
}

std::vector<ZeroGroup> read_groups(const ModelFile& file) {
  const std::string where = file.where + ": param_shapes";
  std::vector<ZeroGroup> groups;
  std::set<std::string> names;
  const PickleValue list = to_sequence(member(file.root, "param_shapes", file.where), where);
  for (size_t i = 0; i < list.size(); ++i) {
    groups.push_back(read_shapes(list.item(i), where));
    for (const ZeroParameter& parameter : groups.back())
      if (!names.insert(parameter.name).second)
        fail(ErrorKind::kCorrupt, "{}: parameter '{}' occurs twice", where, parameter.name);
  }
  return groups;
}

ZeroGroup read_frozen_shapes(const ModelFile& file) {
  const auto shapes = optional_member(file, "frozen_param_shapes");
  return shapes ? read_shapes(*shapes, file.where + ": frozen_param_shapes") : ZeroGroup{};
}

void check_world(const ModelFile& file, size_t ranks, bool is_stage_3) {
  const uint64_t world =
      to_unsigned(member(file.root, "dp_world_size", file.where), file.where + ": dp_world_size");
  if (world == 0 || world > INT32_MAX || (is_stage_3 && world != ranks))
    fail(ErrorKind::kCorrupt, "{}: dp_world_size is {}, but there are model states of {} ranks",
         file.where, world, ranks);
  const auto tensor_ranks = optional_member(file, "mp_world_size");
  if (tensor_ranks && to_unsigned(*tensor_ranks, file.where + ": mp_world_size") != 1)
    fail(ErrorKind::kCorrupt, "{}: {} tensor parallel ranks, which gxp does not read", file.where,
         tensor_ranks->integer());
}

std::optional<std::string> client_text(PickleValue value) {
  if (value.is(PickleKind::kInteger)) return fmt::format("{}", value.integer());
  if (value.is(PickleKind::kFloat)) return fmt::format("{}", value.real());
  if (!value.is(PickleKind::kText) || value.text().size() > kMaxClientText) return std::nullopt;
  return std::string(value.text());
}

// A member of the run's settings; nothing if it is not told.
std::optional<PickleValue> find_setting(const ModelFile& file,
                                        std::initializer_list<std::string_view> path) {
  std::optional<PickleValue> value = optional_member(file, "ds_config");
  for (const std::string_view key : path) {
    if (!value || !value->is(PickleKind::kDict)) return std::nullopt;
    value = find_member(*value, key, file.where);
  }
  return value;
}

bool is_round_robin(const ModelFile& file) {
  const auto value = find_setting(file, {"zero_optimization", "round_robin_gradients"});
  return value && value->is(PickleKind::kBool) && value->boolean();
}

NamedTensors read_run(const ModelFile& file) {
  NamedTensors run;
  const auto count = [&](const char* key) -> std::optional<uint64_t> {
    const auto found = optional_member(file, key);
    if (!found) return std::nullopt;
    return to_unsigned(*found, fmt::format("{}: {}", file.where, key));
  };
  run.step = count("global_steps");
  run.samples_consumed = count("global_samples");
  if (const auto world = count("dp_world_size")) run.world_size = int(*world);
  for (size_t i = 0; i < file.root.size(); ++i) {
    if (!file.root.key(i).is(PickleKind::kText)) continue;
    if (const auto text = client_text(file.root.value(i)))
      run.metadata.emplace(file.root.key(i).text(), *text);
  }
  return run;
}

NamedTensor read_fragment(const ModelFile& file, const std::string& name) {
  const auto fragments = optional_member(file, "frozen_param_fragments");
  if (!fragments) fail(ErrorKind::kCorrupt, "{}: frozen_param_fragments are missing", file.where);
  return file.archive.tensor(member(*fragments, name, file.where + ": frozen_param_fragments"),
                             name);
}

// The frozen parameters' parts of all ranks so far.
using FrozenParts = std::map<std::string, std::vector<NamedTensor>>;

void take_fragments(const ModelFile& file, const ZeroGroup& frozen, size_t ranks,
                    FrozenParts& parts) {
  for (const ZeroParameter& parameter : frozen) {
    NamedTensor part = read_fragment(file, parameter.name);
    const uint64_t width = (parameter.count + ranks - 1) / ranks;
    std::vector<NamedTensor>& list = parts[parameter.name];
    if (part.info.count() != width || (!list.empty() && list[0].info.dtype != part.info.dtype))
      fail(ErrorKind::kCorrupt, "{}: frozen parameter '{}' has {} elements of {} here, {} expected",
           file.where, parameter.name, part.info.count(), to_string(part.info.dtype), width);
    list.push_back(std::move(part));
  }
}

void add_frozen(const ZeroGroup& frozen, FrozenParts& parts, std::vector<NamedTensor>& tensors) {
  for (const ZeroParameter& parameter : frozen) {
    const auto list =
        std::make_shared<const std::vector<NamedTensor>>(std::move(parts[parameter.name]));
    const uint64_t width = list->front().info.count();
    tensors.push_back(
        gather_parts({parameter.name, Role::kWeight, list->front().info.dtype, parameter.shape},
                     list, {.width = width}));
  }
}

std::set<std::string> names_of(const std::vector<ZeroGroup>& groups) {
  std::set<std::string> names;
  for (const ZeroGroup& group : groups)
    for (const ZeroParameter& parameter : group) names.insert(parameter.name);
  return names;
}

std::set<std::string> read_buffer_names(const ModelFile& file) {
  std::set<std::string> names;
  const PickleValue list =
      to_sequence(member(file.root, "buffer_names", file.where), file.where + ": buffer_names");
  for (size_t i = 0; i < list.size(); ++i)
    names.insert(to_text(list.item(i), file.where + ": buffer_names"));
  return names;
}

PickleValue read_module(const ModelFile& file) {
  const PickleValue module = member(file.root, "module", file.where);
  if (module.is_none())
    fail(ErrorKind::kCorrupt,
         "{}: it has no module: the weights are in the files of pipeline stages, which gxp does "
         "not read",
         file.where);
  return to_dict(module, file.where + ": module");
}

// Buffers, and what nothing else tells of. `known`: parameters and aliases.
void take_module(const ModelFile& file, const std::set<std::string>& known, bool is_stage_3,
                 ZeroModel& model) {
  const std::set<std::string> buffers = read_buffer_names(file);
  const bool keeps_all = !is_stage_3 && is_round_robin(file);
  const PickleValue module = read_module(file);
  for (size_t i = 0; i < module.size(); ++i) {
    const std::string name = to_text(module.key(i), file.where + ": module");
    model.order.push_back(name);
    if (known.contains(name)) {
      if (keeps_all && is_tensor(module.value(i)))
        model.module.push_back(file.archive.tensor(module.value(i), name));
      continue;
    }
    if (!is_tensor(module.value(i))) {
      log_info("{}: '{}' of the module is left out, since it is not a tensor", file.where, name);
      continue;
    }
    NamedTensor tensor = file.archive.tensor(module.value(i), name);
    const bool is_buffer = buffers.contains(name);
    if (!is_buffer && is_stage_3 && tensor.info.count() == 0)
      fail(ErrorKind::kCorrupt, "{}: no file records the elements of '{}'", file.where, name);
    const StorageDType dtype = tensor.info.dtype;
    const bool is_half = dtype == StorageDType::kBF16 || dtype == StorageDType::kF16;
    model.others.push_back(is_buffer && is_half ? widened(std::move(tensor)) : std::move(tensor));
  }
}

void take_shared(const ModelFile& file, ZeroModel& model) {
  const auto shared = optional_member(file, "shared_params");
  if (!shared) return;
  const std::string where = file.where + ": shared_params";
  to_dict(*shared, where);
  for (size_t i = 0; i < shared->size(); ++i)
    model.shared.emplace_back(to_text(shared->key(i), where), to_text(shared->value(i), where));
}

}  // namespace

ZeroModel read_model_states(const std::vector<std::string>& paths, bool is_stage_3) {
  ZeroModel model;
  ZeroGroup frozen;
  FrozenParts parts;
  for (const std::string& path : paths) {
    const ModelFile file = open_model_file(path);
    model.file_bytes += file.bytes;
    check_world(file, paths.size(), is_stage_3);
    std::vector<ZeroGroup> groups = read_groups(file);
    ZeroGroup frozen_here = read_frozen_shapes(file);
    const bool is_first = path == paths.front();
    if (!is_first && (groups != model.groups || frozen_here != frozen))
      fail(ErrorKind::kCorrupt, "{}: its parameters differ from those of {}", file.where,
           paths.front());
    take_fragments(file, frozen_here, paths.size(), parts);
    if (!is_first) continue;
    model.groups = std::move(groups);
    frozen = std::move(frozen_here);
    model.run = read_run(file);
    take_pt_metadata(read_module(file), file.where, model.run);
    take_shared(file, model);
    std::set<std::string> known = names_of(model.groups);
    for (const ZeroParameter& parameter : frozen) known.insert(parameter.name);
    for (const auto& [alias, owner] : model.shared) known.insert(alias);
    take_module(file, known, is_stage_3, model);
  }
  add_frozen(frozen, parts, model.others);
  return model;
}

bool is_unpartitioned(const std::string& path) {
  const ModelFile file = open_model_file(path);
  const auto stage = find_setting(file, {"zero_optimization", "stage"});
  const bool is_zero = stage && !(stage->is(PickleKind::kInteger) && stage->integer() == 0);
  return !is_zero && optional_member(file, "ds_config");
}

NamedTensors read_unpartitioned(const std::string& path) {
  const ModelFile file = open_model_file(path);
  check_world(file, 1, false);
  NamedTensors result = read_run(file);
  const PickleValue module = read_module(file);
  auto weights = take_pt_weights(file.archive, module, file.where, result);
  take_pt_metadata(module, file.where, result);
  const std::set<std::string> buffers = read_buffer_names(file);
  for (OptimizerWeight& weight : weights)
    weight.is_tied |= buffers.contains(weight.info.name);  // no parameter
  const auto optimizer = optional_member(file, "optimizer");
  if (!optimizer) return result;
  to_dict(*optimizer, file.where + ": optimizer");
  if (find_member(*optimizer, "param_groups", file.where)) {
    take_pt_optimizer(file.archive, *optimizer, weights, path, result);
  } else {
    result.optimizer.lost.emplace_back(
        "the optimizer of 16-bit training without ZeRO, whose fp32 weights have no names");
  }
  return result;
}

void keep_groups(std::vector<ParameterGroup> groups, const std::vector<ZeroGroup>& shapes,
                 const std::string& where, NamedTensors& result) {
  const bool told = std::ranges::any_of(
      groups, [](const ParameterGroup& group) { return !group.settings.empty(); });
  if (!told) return;
  const bool are_alike = std::ranges::all_of(groups, [&](const ParameterGroup& group) {
    return group.settings == groups.front().settings;
  });
  if (groups.size() != shapes.size() && !are_alike)
    return log_warn(
        "{}: the files do not record which parameters are in which of the optimizer's {} groups; "
        "the group without weight decay is assumed to be the vectors",
        where, groups.size());
  if (groups.size() != shapes.size()) groups.resize(1);
  for (size_t g = 0; g < shapes.size(); ++g)
    for (const ZeroParameter& parameter : shapes[g])
      groups[groups.size() == 1 ? 0 : g].names.push_back(parameter.name);
  result.optimizer.groups = std::move(groups);
}

void finish_weights(const ZeroModel& model, const std::string& where,
                    std::vector<NamedTensor>& tensors) {
  std::map<std::string, size_t> weights;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& info = tensors[i].info;
    if (info.role == Role::kWeight && !weights.emplace(info.name, i).second)
      fail(ErrorKind::kCorrupt, "{}: the weight '{}' occurs twice", where, info.name);
  }
  for (const auto& [alias, owner] : model.shared) {
    if (weights.contains(alias)) continue;
    const auto found = weights.find(owner);
    if (found == weights.end())
      fail(ErrorKind::kCorrupt, "{}: '{}' is shared with '{}', which is missing", where, alias,
           owner);
    NamedTensor copy = tensors[found->second];
    copy.info.name = alias;
    weights.emplace(alias, tensors.size());
    tensors.push_back(std::move(copy));
  }
  std::map<std::string, size_t> places;
  for (const std::string& name : model.order) places.emplace(name, places.size());
  const auto place = [&](const NamedTensor& tensor) {
    const auto found = places.find(tensor.info.name);
    return found == places.end() ? places.size() : found->second;
  };
  std::ranges::stable_sort(tensors, {}, place);
}

}  // namespace gxp

// Writes universal checkpoints.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "lib/base/error.h"
#include "lib/ckpt/deepspeed/universal.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/torch/optimizer_state.h"
#include "lib/ckpt/torch/pt_metadata.h"
#include "lib/ckpt/torch/torch_writer.h"

namespace gxp {
namespace {

constexpr std::string_view kTagBegin = "global_step";
constexpr std::string_view kZeroFolder = "zero/";
constexpr std::string_view kWrittenStates[] = {"mp_rank_00_model_states.pt",
                                               "zero_pp_rank_0_mp_rank_00_model_states.pt"};
// Whose layout is written; DeepSpeed refuses checkpoints that name no version.
constexpr std::string_view kLayoutVersion = "0.19.8";

std::string_view key_of_role(Role role) {
  if (role == Role::kWeight) return "fp32";
  return std::ranges::find(kOptimizerKeys, role, &OptimizerKey::role)->key;
}

bool is_written_key(std::string_view key) {
  return key == "fp32" || key == "step" ||
         std::ranges::find(kOptimizerKeys, key, &OptimizerKey::key) != kOptimizerKeys.end();
}

// What is written of one weight.
struct UniversalParameter {
  const NamedTensor* weight = nullptr;
  std::vector<const NamedTensor*> kept = {};
};

void check_universal_name(const std::string& name) {
  if (!is_plain_name(name) || name == "optimizer_state.pt")
    fail(ErrorKind::kConfig,
         "write a universal checkpoint: tensor name '{}' cannot be a directory name", name);
}

// In the order of the weights.
std::vector<UniversalParameter> universal_parameters(const NamedTensors& tensors) {
  std::vector<UniversalParameter> parameters;
  std::map<std::string, size_t> places;
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.role != Role::kWeight) continue;
    check_universal_name(tensor.info.name);
    places.emplace(tensor.info.name, parameters.size());
    parameters.push_back({&tensor});
  }
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.role == Role::kWeight) continue;
    const auto place = places.find(tensor.info.name);
    if (place == places.end())
      fail(ErrorKind::kConfig,
           "write a universal checkpoint: there is optimizer state of '{}', but no such weight",
           tensor.info.name);
    parameters[place->second].kept.push_back(&tensor);
  }
  return parameters;
}

void write_universal_archive(const std::string& path, PickleWriter& pickle,
                             const std::vector<const NamedTensor*>& tensors) {
  const size_t begin = path.rfind('/') + 1;
  OutputFile file(path);
  write_torch_archive(file, path.substr(begin, path.size() - begin - 3), pickle.finish(), tensors);
  file.close();
}

void write_universal_parameter(const UniversalParameter& parameter, const std::string& zero,
                               const NamedTensor* step) {
  const std::string directory = zero + "/" + parameter.weight->info.name;
  create_new_directory(directory);
  std::vector<const NamedTensor*> tensors = parameter.kept;
  tensors.insert(tensors.begin(), parameter.weight);
  for (const NamedTensor* tensor : tensors) {
    PickleWriter pickle;
    pickle.begin_dict();
    pickle.text("cat_dim");
    pickle.integer(0);
    pickle.text("param");
    put_tensor(pickle, tensor->info, "0");
    pickle.end_dict();
    write_universal_archive(fmt::format("{}/{}.pt", directory, key_of_role(tensor->info.role)),
                            pickle, {tensor});
  }
  if (step != nullptr && !parameter.kept.empty()) {
    PickleWriter pickle;
    put_tensor(pickle, step->info, "0");
    write_universal_archive(directory + "/step.pt", pickle, {step});
  }
  sync_directory(directory);
}

void put_empty_groups(PickleWriter& pickle, size_t count) {
  pickle.text("param_groups");
  pickle.begin_list();
  for (size_t i = 0; i < count; ++i) {
    pickle.begin_dict();
    pickle.end_dict();
  }
  pickle.end_list();
}

// Stages 1 and 2 read param_groups, stage 3 optimizer_state_dict.
void write_optimizer_state(const NamedTensors& tensors, size_t groups, const NamedTensor& step,
                           const std::string& path) {
  PickleWriter pickle;
  pickle.begin_dict();
  pickle.text("ds_version");
  pickle.text(kLayoutVersion);
  for (const int stage : {1, 2, 3}) {
    if (tensors.strategy != fmt::format("zero{}", stage)) continue;
    pickle.text("zero_stage");
    pickle.integer(stage);
  }
  put_empty_groups(pickle, groups);
  pickle.text("optimizer_state_dict");
  pickle.begin_dict();
  pickle.text("state");
  pickle.begin_dict();
  pickle.integer(0);
  pickle.begin_dict();
  pickle.text("step");
  put_tensor(pickle, step.info, "0");
  pickle.end_dict();
  pickle.end_dict();
  put_empty_groups(pickle, 1);
  pickle.end_dict();
  pickle.end_dict();
  write_universal_archive(path, pickle, {&step});
}

void put_param_shapes(PickleWriter& pickle, const std::vector<UniversalParameter>& parameters) {
  pickle.text("param_shapes");
  pickle.begin_list();
  pickle.begin_ordered_dict();
  for (const UniversalParameter& parameter : parameters) {
    pickle.text(parameter.weight->info.name);
    pickle.global("torch", "Size");
    pickle.begin_tuple();
    pickle.begin_tuple();
    for (const uint64_t size : parameter.weight->info.shape) pickle.integer(int64_t(size));
    pickle.end_tuple();
    pickle.end_tuple();
    pickle.reduce();
  }
  pickle.end_dict();
  pickle.end_list();
}

void write_universal_model(const NamedTensors& tensors,
                           const std::vector<UniversalParameter>& parameters,
                           const std::string& path) {
  const auto step = int64_t(tensors.step.value_or(0));
  PickleWriter pickle;
  const auto put_number = [&](const char* key, int64_t value) {
    pickle.text(key);
    pickle.integer(value);
  };
  pickle.begin_dict();
  pickle.text("module");
  pickle.begin_ordered_dict();
  pickle.end_dict();
  put_pt_metadata(pickle, tensors);
  pickle.text("buffer_names");
  pickle.begin_list();
  pickle.end_list();
  put_param_shapes(pickle, parameters);
  for (const char* key : {"shared_params", "ds_config"}) {
    pickle.text(key);
    pickle.begin_dict();
    pickle.end_dict();
  }
  for (const char* key : {"optimizer", "frozen_param_shapes", "frozen_param_fragments",
                          "data_sampler", "random_ltd"}) {
    pickle.text(key);
    pickle.none();
  }
  pickle.text("lr_scheduler");
  pickle.begin_dict();
  put_number("last_batch_iteration", step - 1);
  pickle.end_dict();
  put_number("skipped_steps", 0);
  put_number("global_steps", step);
  put_number("global_samples", int64_t(tensors.samples_consumed.value_or(0)));
  put_number("dp_world_size", tensors.world_size.value_or(1));
  put_number("mp_world_size", 1);
  pickle.text("ds_version");
  pickle.text(kLayoutVersion);
  pickle.end_dict();
  write_universal_archive(path, pickle, {});
}

// What lies below the directory of the tag.
bool is_below_tag(std::string_view rest) {
  if (rest.empty() || std::ranges::find(kWrittenStates, rest) != std::end(kWrittenStates))
    return true;
  if (!rest.starts_with(kZeroFolder)) return false;
  rest.remove_prefix(kZeroFolder.size());
  if (rest.empty() || rest == "optimizer_state.pt") return true;
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return false;
  rest.remove_prefix(slash + 1);
  return rest.empty() || (rest.ends_with(".pt") && is_written_key(rest.substr(0, rest.size() - 3)));
}

}  // namespace

bool is_universal_file(std::string_view name) {
  if (name == "latest_universal") return true;
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos || !name.starts_with(kTagBegin)) return false;
  const std::string_view number = name.substr(kTagBegin.size(), slash - kTagBegin.size());
  const bool is_tag = !number.empty() && std::ranges::all_of(number, [](char digit) {
    return digit >= '0' && digit <= '9';
  });
  return is_tag && is_below_tag(name.substr(slash + 1));
}

void write_universal(const NamedTensors& tensors, const std::string& path, const WriteOptions&) {
  const std::vector<UniversalParameter> parameters = universal_parameters(tensors);
  const std::string tag = fmt::format("{}{}", kTagBegin, tensors.step.value_or(0));
  const std::string directory = path + "/" + tag, zero = directory + "/zero";
  for (const std::string& each : {path, directory, zero}) create_new_directory(each);
  const NamedTensor step = step_tensor(tensors.step.value_or(0));
  for (const UniversalParameter& parameter : parameters) {
    const auto its_step = step_of(tensors, parameter.weight->info.name);
    const NamedTensor own = step_tensor(its_step.value_or(0));
    write_universal_parameter(parameter, zero, its_step ? &own : nullptr);
  }
  write_optimizer_state(tensors, parameters.size(), step, zero + "/optimizer_state.pt");
  for (const std::string_view name : kWrittenStates)
    write_universal_model(tensors, parameters, fmt::format("{}/{}", directory, name));
  sync_directory(zero);
  sync_directory(directory);
  write_text(path + "/latest_universal", tag);
}

}  // namespace gxp

// write_pt().
#include <algorithm>
#include <list>
#include <map>

#include "lib/base/error.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/torch/optimizer_settings.h"
#include "lib/ckpt/torch/optimizer_state.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/ckpt/torch/pt_metadata.h"
#include "lib/ckpt/torch/torch_writer.h"

namespace gxp {
namespace {

// What is written: the pickle so far, and the tensors that it names, in the order of their keys.
class PtContent {
 public:
  PickleWriter pickle;

  void put(const NamedTensor& tensor) {
    put_tensor(pickle, tensor.info, fmt::format("{}", storages_.size()));
    storages_.push_back(&tensor);
  }
  void write(const std::string& path) {
    OutputFile file(path);
    write_torch_archive(file, "archive", pickle.finish(), storages_);
    file.close();
  }

 private:
  std::vector<const NamedTensor*> storages_;
};

void put_state_dict(PtContent& content, const NamedTensors& tensors) {
  content.pickle.begin_ordered_dict();
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.role != Role::kWeight) continue;
    content.pickle.text(tensor.info.name);
    content.put(tensor);
  }
  content.pickle.end_dict();
  put_pt_metadata(content.pickle, tensors);
}

// One parameter of the optimizer.
struct PtParameter {
  std::string name;
  std::vector<const NamedTensor*> kept = {};
};

// A group of parameters, which are numbered through all groups.
struct PtGroup {
  std::vector<PtParameter> parameters = {};
  const ParameterGroup* told = nullptr;  // by the source; else gxp's own
  bool decays = false;
};

using KeptByName = std::map<std::string, std::vector<const NamedTensor*>>;

KeptByName kept_by_name(const NamedTensors& tensors) {
  KeptByName kept;
  for (const NamedTensor& tensor : tensors.tensors)
    if (tensor.info.role != Role::kWeight) kept[tensor.info.name].push_back(&tensor);
  return kept;
}

// The source's groups, with all their parameters.
std::vector<PtGroup> told_groups(const NamedTensors& tensors) {
  KeptByName kept = kept_by_name(tensors);
  std::vector<PtGroup> groups;
  for (const ParameterGroup& told : tensors.optimizer.groups) {
    PtGroup& group = groups.emplace_back();
    group.told = &told;
    for (const std::string& name : told.names) {
      const auto found = kept.find(name);
      group.parameters.push_back(
          {name, found == kept.end() ? decltype(PtParameter::kept)() : std::move(found->second)});
      if (found != kept.end()) kept.erase(found);
    }
  }
  if (!kept.empty())
    fail(ErrorKind::kConfig,
         "write a .pt file: the optimizer's state of '{}' belongs to no group of parameters; leave "
         "the optimizer out with --drop-optimizer",
         kept.begin()->first);
  return groups;
}

// Those of gxp: the parameters of which something is kept, those that decay first.
std::vector<PtGroup> own_groups(const NamedTensors& tensors) {
  KeptByName kept = kept_by_name(tensors);
  std::vector<PtGroup> groups(2);
  groups[0].decays = true;
  // By the weight's shape, as Adafactor's means have fewer axes; then state without a weight.
  for (const bool of_weights : {true, false}) {
    for (const NamedTensor& tensor : tensors.tensors) {
      const TensorInfo& info = tensor.info;
      const auto found = kept.find(info.name);
      if ((info.role == Role::kWeight) != of_weights || found == kept.end()) continue;
      groups[decays(info, tensors.config) ? 0 : 1].parameters.push_back(
          {info.name, std::move(found->second)});
      kept.erase(found);
    }
  }
  std::erase_if(groups, [](const PtGroup& group) { return group.parameters.empty(); });
  return groups;
}

bool keeps(const NamedTensors& tensors, Role role) {
  return std::ranges::any_of(tensors.tensors,
                             [&](const NamedTensor& tensor) { return tensor.info.role == role; });
}

void put_states(PtContent& content, const std::vector<PtGroup>& groups, const NamedTensors& tensors,
                std::list<NamedTensor>& steps) {
  content.pickle.begin_dict();
  const bool is_adam = keeps(tensors, Role::kAdamV);
  int64_t index = -1;
  for (const PtGroup& group : groups) {
    for (const PtParameter& parameter : group.parameters) {
      ++index;
      const bool has_step = tensors.optimizer.steps.contains(parameter.name) ||
                            (is_adam && !parameter.kept.empty() && tensors.step);
      if (parameter.kept.empty() && !has_step) continue;
      content.pickle.integer(index);
      content.pickle.begin_dict();
      if (has_step) {  // in a storage of its own, since torch adds 1 to each
        content.pickle.text("step");
        content.put(steps.emplace_back(step_tensor(step_of(tensors, parameter.name).value())));
      }
      for (const NamedTensor* kept : parameter.kept) {
        content.pickle.text(
            std::ranges::find(kOptimizerKeys, kept->info.role, &OptimizerKey::role)->key);
        content.put(*kept);
      }
      content.pickle.end_dict();
    }
  }
  content.pickle.end_dict();
}

void put_settings(PickleWriter& pickle, const PtGroup& group, const NamedTensors& tensors) {
  if (group.told != nullptr) {
    for (const auto& [key, json] : group.told->settings) {
      pickle.text(key);
      put_setting_json(pickle, json);
    }
    return;
  }
  const bool is_adam = keeps(tensors, Role::kAdamV) || !keeps(tensors, Role::kMomentum);
  for (const OptimizerSetting& setting : is_adam ? adam_settings(tensors.config, group.decays)
                                                 : sgd_settings(tensors.config, group.decays)) {
    pickle.text(setting.key);
    put_setting(pickle, setting);
  }
}

void put_groups(PtContent& content, const std::vector<PtGroup>& groups,
                const NamedTensors& tensors) {
  PickleWriter& pickle = content.pickle;
  pickle.begin_list();
  int64_t index = 0;
  for (const PtGroup& group : groups) {
    pickle.begin_dict();
    put_settings(pickle, group, tensors);
    pickle.text("params");
    pickle.begin_list();
    for (size_t i = 0; i < group.parameters.size(); ++i) pickle.integer(index++);
    pickle.end_list();
    pickle.text("param_names");
    pickle.begin_list();
    for (const PtParameter& parameter : group.parameters) pickle.text(parameter.name);
    pickle.end_list();
    pickle.end_dict();
  }
  pickle.end_list();
}

}  // namespace

void write_pt(const NamedTensors& tensors, const std::string& path, const WriteOptions&) {
  PtContent content;
  const auto groups = tensors.optimizer.groups.empty() ? own_groups(tensors) : told_groups(tensors);
  std::list<NamedTensor> steps;  // the content points to them
  if (groups.empty()) {
    put_state_dict(content, tensors);
    return content.write(path);
  }
  content.pickle.begin_dict();
  content.pickle.text("model");
  put_state_dict(content, tensors);
  content.pickle.text("optimizer");
  content.pickle.begin_dict();
  content.pickle.text("state");
  put_states(content, groups, tensors, steps);
  content.pickle.text("param_groups");
  put_groups(content, groups, tensors);
  content.pickle.end_dict();
  if (tensors.step) {
    content.pickle.text("step");
    content.pickle.integer(int64_t(*tensors.step));
  }
  content.pickle.end_dict();
  content.write(path);
}

}  // namespace gxp

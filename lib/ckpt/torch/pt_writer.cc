// write_pt().
#include <algorithm>
#include <map>
#include <set>

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
  bool decays = false;
  std::vector<const NamedTensor*> kept = {};
};

// The parameters of which something is kept, those that decay first: their order is their number.
std::vector<PtParameter> parameters_of(const NamedTensors& tensors) {
  std::map<std::string, PtParameter> by_name;
  std::vector<std::string> order;
  for (const NamedTensor& tensor : tensors.tensors) {
    const auto [place, fresh] = by_name.try_emplace(tensor.info.name);
    if (fresh) order.push_back(tensor.info.name);
    if (tensor.info.role == Role::kWeight) {
      place->second.decays = decays(tensor.info, tensors.config);
    } else {
      place->second.kept.push_back(&tensor);
    }
  }
  std::vector<PtParameter> parameters;
  for (const std::string& name : order) {
    PtParameter& parameter = by_name[name];
    parameter.name = name;
    if (!parameter.kept.empty()) parameters.push_back(std::move(parameter));
  }
  std::stable_partition(parameters.begin(), parameters.end(),
                        [](const PtParameter& parameter) { return parameter.decays; });
  return parameters;
}

bool keeps(const std::vector<PtParameter>& parameters, Role role) {
  return std::ranges::any_of(parameters, [&](const PtParameter& parameter) {
    return std::ranges::any_of(parameter.kept,
                               [&](const NamedTensor* kept) { return kept->info.role == role; });
  });
}

void put_states(PtContent& content, const std::vector<PtParameter>& parameters,
                const NamedTensor* step) {
  content.pickle.begin_dict();
  for (size_t i = 0; i < parameters.size(); ++i) {
    content.pickle.integer(int64_t(i));
    content.pickle.begin_dict();
    if (step != nullptr) {  // in a storage of its own, since torch adds 1 to each
      content.pickle.text("step");
      content.put(*step);
    }
    for (const NamedTensor* kept : parameters[i].kept) {
      content.pickle.text(
          std::ranges::find(kOptimizerKeys, kept->info.role, &OptimizerKey::role)->key);
      content.put(*kept);
    }
    content.pickle.end_dict();
  }
  content.pickle.end_dict();
}

void put_groups(PtContent& content, const std::vector<PtParameter>& parameters,
                const KeyValues& config) {
  PickleWriter& pickle = content.pickle;
  const bool is_adam = keeps(parameters, Role::kAdamV) || !keeps(parameters, Role::kMomentum);
  pickle.begin_list();
  for (const bool decays : {true, false}) {
    const auto put_list = [&](const char* key, auto put_one) {
      pickle.text(key);
      pickle.begin_list();
      for (size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].decays == decays) put_one(i);
      pickle.end_list();
    };
    if (std::ranges::find(parameters, decays, &PtParameter::decays) == parameters.end()) continue;
    pickle.begin_dict();
    for (const OptimizerSetting& setting :
         is_adam ? adam_settings(config, decays) : sgd_settings(config, decays)) {
      pickle.text(setting.key);
      put_setting(pickle, setting);
    }
    put_list("params", [&](size_t i) { pickle.integer(int64_t(i)); });
    put_list("param_names", [&](size_t i) { pickle.text(parameters[i].name); });
    pickle.end_dict();
  }
  pickle.end_list();
}

}  // namespace

void write_pt(const NamedTensors& tensors, const std::string& path, const WriteOptions&) {
  PtContent content;
  const auto parameters = parameters_of(tensors);
  const NamedTensor step = step_tensor(tensors.step.value_or(0));
  if (parameters.empty()) {
    put_state_dict(content, tensors);
    return content.write(path);
  }
  content.pickle.begin_dict();
  content.pickle.text("model");
  put_state_dict(content, tensors);
  content.pickle.text("optimizer");
  content.pickle.begin_dict();
  content.pickle.text("state");
  put_states(content, parameters, keeps(parameters, Role::kAdamV) ? &step : nullptr);
  content.pickle.text("param_groups");
  put_groups(content, parameters, tensors.config);
  content.pickle.end_dict();
  if (tensors.step) {
    content.pickle.text("step");
    content.pickle.integer(int64_t(*tensors.step));
  }
  content.pickle.end_dict();
  content.write(path);
}

}  // namespace gxp

// write_dcp().

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/shards.h"
#include "lib/ckpt/torch/dcp.h"
#include "lib/ckpt/torch/dcp_metadata_writer.h"
#include "lib/ckpt/torch/optimizer_settings.h"
#include "lib/ckpt/torch/optimizer_state.h"
#include "lib/ckpt/torch/pt_metadata.h"
#include "lib/ckpt/torch/torch_writer.h"

namespace gxp {
namespace {

// The directory in the making: archives one after the other, and what they are.
class DcpOutput {
 public:
  explicit DcpOutput(std::string directory) : directory_(std::move(directory)) {}

  // What is put from here on lies in a new file.
  void begin_file();
  void put(const std::vector<std::string>& path, const NamedTensor& tensor) {
    PickleWriter pickle;
    put_tensor(pickle, tensor.info, "0");
    add(path, pickle, &tensor);
  }
  // `pickle` has one value.
  void put(const std::vector<std::string>& path, PickleWriter& pickle) {
    add(path, pickle, nullptr);
  }
  // Closes the last file and writes .metadata.
  void finish();

 private:
  void add(const std::vector<std::string>& path, PickleWriter& pickle, const NamedTensor* tensor);

  std::string directory_;
  std::unique_ptr<OutputFile> file_;
  std::vector<std::string> files_;
  std::vector<DcpWritten> entries_;
};

void DcpOutput::begin_file() {
  if (file_) file_->close();
  files_.push_back(fmt::format("__0_{}.distcp", files_.size()));
  file_ = std::make_unique<OutputFile>(fmt::format("{}/{}", directory_, files_.back()));
}

void DcpOutput::add(const std::vector<std::string>& path, PickleWriter& pickle,
                    const NamedTensor* tensor) {
  if (!file_) begin_file();
  DcpWritten entry{{joined(path, "."), path}};
  if (entry.key.text.size() > kMaxDcpKeyBytes)
    fail(ErrorKind::kConfig, "write {}: the key '{}' is longer than {} bytes", directory_,
         entry.key.text, kMaxDcpKeyBytes);
  std::vector<const NamedTensor*> storages;
  if (tensor != nullptr) storages.push_back(tensor);
  entry.place = {files_.size() - 1, file_->bytes()};
  entry.place.bytes = write_torch_archive(*file_, "archive", pickle.finish(), storages);
  if (tensor != nullptr) entry.tensor = tensor->info;
  entries_.push_back(std::move(entry));
}

void DcpOutput::finish() {
  if (file_) file_->close();
  write_text(fmt::format("{}/.metadata", directory_), make_dcp_metadata(entries_, files_));
}

void put_dcp_tensor(DcpOutput& output, const NamedTensor& tensor) {
  const TensorInfo& info = tensor.info;
  if (info.role == Role::kWeight) return output.put({"model", info.name}, tensor);
  const auto row = std::ranges::find(kOptimizerKeys, info.role, &OptimizerKey::role);
  output.put({"optim", "state", info.name, std::string(row->key)}, tensor);
}

// The parameters of which something is kept, and whether they decay.
struct DcpParameters {
  std::map<std::string, bool> decays;
  bool is_adam = false;
};

DcpParameters dcp_parameters(const NamedTensors& tensors) {
  DcpParameters result;
  bool has_momentum = false;
  for (const NamedTensor& tensor : tensors.tensors) {
    const TensorInfo& info = tensor.info;
    if (info.role == Role::kWeight) continue;
    result.decays.try_emplace(info.name, decays(info, tensors.config));
    result.is_adam |= info.role == Role::kAdamV;
    has_momentum |= info.role == Role::kMomentum;
  }
  result.is_adam |= !has_momentum;
  for (const NamedTensor& tensor : tensors.tensors) {  // Adafactor's means have fewer axes
    const auto found = result.decays.find(tensor.info.name);
    if (tensor.info.role == Role::kWeight && found != result.decays.end())
      found->second = decays(tensor.info, tensors.config);
  }
  return result;
}

// One group, as get_optimizer_state_dict() has it: names for parameters.
class DcpGroupOutput {
 public:
  DcpGroupOutput(DcpOutput& output, size_t index)
      : output_(output), index_(fmt::format("{}", index)) {}

  // Puts one value of it.
  void put(std::string_view key, const std::function<void(PickleWriter&)>& value) {
    PickleWriter pickle;
    value(pickle);
    output_.put({"optim", "param_groups", index_, std::string(key)}, pickle);
  }
  void put_names(const std::vector<std::string>& names) {
    put("params", [&](PickleWriter& pickle) {
      pickle.begin_list();
      for (const std::string& name : names) pickle.text(name);
      pickle.end_list();
    });
  }

 private:
  DcpOutput& output_;
  std::string index_;
};

// As the source has them.
void put_told_groups(DcpOutput& output, const NamedTensors& tensors,
                     const DcpParameters& parameters) {
  std::set<std::string> grouped;
  for (size_t i = 0; i < tensors.optimizer.groups.size(); ++i) {
    const ParameterGroup& told = tensors.optimizer.groups[i];
    DcpGroupOutput group(output, i);
    for (const auto& setting : told.settings)
      group.put(setting.first,
                [&](PickleWriter& pickle) { put_setting_json(pickle, setting.second); });
    group.put_names(told.names);
    grouped.insert(told.names.begin(), told.names.end());
  }
  for (const auto& [name, decays] : parameters.decays)
    if (!grouped.contains(name))
      fail(ErrorKind::kConfig,
           "write a DCP checkpoint: the optimizer's state of '{}' belongs to no group of "
           "parameters; leave the optimizer out with --drop-optimizer",
           name);
}

void put_own_groups(DcpOutput& output, const NamedTensors& tensors,
                    const DcpParameters& parameters) {
  size_t groups = 0;
  for (const bool decays : {true, false}) {
    std::vector<std::string> names;
    for (const auto& [name, matrix] : parameters.decays)
      if (matrix == decays) names.push_back(name);
    if (names.empty()) continue;
    DcpGroupOutput group(output, groups++);
    for (const OptimizerSetting& setting : parameters.is_adam
                                               ? adam_settings(tensors.config, decays)
                                               : sgd_settings(tensors.config, decays))
      group.put(setting.key, [&](PickleWriter& pickle) { put_setting(pickle, setting); });
    group.put_names(names);
  }
}

void put_dcp_optimizer(DcpOutput& output, const NamedTensors& tensors) {
  const DcpParameters parameters = dcp_parameters(tensors);
  for (const auto& [name, decays] : parameters.decays) {
    const bool has_step = parameters.is_adam || tensors.optimizer.steps.contains(name);
    if (has_step)
      output.put({"optim", "state", name, "step"}, step_tensor(step_of(tensors, name).value_or(0)));
  }
  if (!tensors.optimizer.groups.empty()) return put_told_groups(output, tensors, parameters);
  put_own_groups(output, tensors, parameters);
}

}  // namespace

void write_dcp(const NamedTensors& tensors, const std::string& path, const WriteOptions& options) {
  create_new_directory(path);
  DcpOutput output(path);
  TensorSelection all;
  for (const NamedTensor& tensor : tensors.tensors) all.push_back(&tensor);
  for (const TensorSelection& shard : split_into_shards(all, options)) {
    output.begin_file();
    for (const NamedTensor* tensor : shard) put_dcp_tensor(output, *tensor);
  }
  put_dcp_optimizer(output, tensors);
  PickleWriter pickle;
  if (tensors.step) {
    pickle.integer(int64_t(*tensors.step));
    output.put({"step"}, pickle);
    pickle = {};
  }
  pickle.begin_ordered_dict();
  pickle.end_dict();
  put_pt_metadata(pickle, tensors);
  output.put({"gxp"}, pickle);
  output.finish();
}

}  // namespace gxp

// write_dcp().
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "lib/base/error.h"
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
  DcpWritten entry{{fmt::format("{}", fmt::join(path, ".")), path}};
  if (entry.key.text.size() > kMaxDcpKeyBytes)
    fail(ErrorKind::kConfig, "write {}: the key '{}' has more than {} bytes", directory_,
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
void put_dcp_group(DcpOutput& output, const NamedTensors& tensors, const DcpParameters& parameters,
                   bool decays, const std::string& index) {
  const auto settings = parameters.is_adam ? adam_settings(tensors.config, decays)
                                           : sgd_settings(tensors.config, decays);
  PickleWriter pickle;
  for (const OptimizerSetting& setting : settings) {
    put_setting(pickle, setting);
    output.put({"optim", "param_groups", index, std::string(setting.key)}, pickle);
    pickle = {};
  }
  pickle.begin_list();
  for (const auto& [name, matrix] : parameters.decays)
    if (matrix == decays) pickle.text(name);
  pickle.end_list();
  output.put({"optim", "param_groups", index, "params"}, pickle);
}

void put_dcp_optimizer(DcpOutput& output, const NamedTensors& tensors) {
  const DcpParameters parameters = dcp_parameters(tensors);
  if (parameters.decays.empty()) return;
  const NamedTensor step = step_tensor(tensors.step.value_or(0));
  for (const auto& [name, decays] : parameters.decays)
    if (parameters.is_adam) output.put({"optim", "state", name, "step"}, step);
  int groups = 0;
  for (const bool decays : {true, false}) {
    const bool any = std::ranges::any_of(
        parameters.decays, [&](const auto& parameter) { return parameter.second == decays; });
    if (any) put_dcp_group(output, tensors, parameters, decays, fmt::format("{}", groups++));
  }
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

#include "lib/ckpt/peft/peft.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "lib/ckpt/peft/adapters.h"
#include "lib/ckpt/safetensors/safetensors.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/config/settings.h"

namespace gxp {
namespace {

constexpr const char* kConfigName = "adapter_config.json";
constexpr const char* kWeightsName = "adapter_model.safetensors";
constexpr const char* kOldWeightsName = "adapter_model.bin";  // before peft 0.7
constexpr const char* kAdapterText = "peft.config";           // in NamedTensors::metadata
constexpr uint64_t kMaxConfigBytes = 1u << 20;

std::string inside(const std::string& directory, const char* name) {
  return fmt::format("{}/{}", directory, name);
}

KeyValues settings_of(const LoraConfig& lora) {
  RunConfig run;
  run.lora = lora;
  KeyValues settings;
  for (const Setting& setting : gxp::settings())
    if (setting.section == "lora" && setting.key != "init")
      settings.emplace_back(setting.name(), to_toml(setting.get(run)));
  return settings;
}

}  // namespace

bool is_peft(const std::string& path) {
  return path_exists(inside(path, kConfigName)) &&
         (path_exists(inside(path, kWeightsName)) || path_exists(inside(path, kOldWeightsName)));
}

bool is_peft_file(std::string_view name) { return name == kConfigName || name == kWeightsName; }

NamedTensors read_peft(const std::string& path) {
  const std::string file = inside(path, kConfigName);
  const std::string text = read_text(file, kMaxConfigBytes);
  const std::string weights = inside(path, kWeightsName);
  NamedTensors result =
      path_exists(weights) ? read_safetensors(weights) : read_pt(inside(path, kOldWeightsName));
  result.format = "peft";
  result.config = settings_of(read_adapter_config(text, file).lora);
  result.metadata[kAdapterText] = text;
  return result;
}

void check_fits_peft(const NamedTensors& tensors) { (void)adapter_of(tensors); }

void write_peft(const NamedTensors& tensors, const std::string& directory, const WriteOptions&) {
  const AdapterConfig adapter = adapter_of(tensors);
  NamedTensors weights{.metadata = {{"format", "pt"}}};
  std::ranges::copy_if(tensors.tensors, std::back_inserter(weights.tensors), is_adapter);
  std::error_code error;
  if (std::filesystem::create_directory(directory, error); error)
    fail(ErrorKind::kIo, "create {}: {}", directory, error.message());
  write_safetensors_file(weights, inside(directory, kWeightsName));
  write_text(inside(directory, kConfigName), make_adapter_config(adapter));
}

AdapterConfig adapter_of(const NamedTensors& tensors) {
  const auto text = tensors.metadata.find(kAdapterText);
  if (text != tensors.metadata.end()) return read_adapter_config(text->second, kConfigName);
  RunConfig run;
  if (const auto problem = take_settings("lora", tensors.config, run); !problem.empty())
    fail(ErrorKind::kCorrupt, "read adapters: {}", problem);
  if (run.lora.rank == 0)
    fail(ErrorKind::kConfig,
         "read adapters: the source has none; take a checkpoint of a run with [lora], or a PEFT "
         "directory");
  const std::string name = family_told(tensors.config);
  AdapterConfig adapter{.lora = run.lora};
  adapter.transposed = !name.empty() && find_family(name).kind.inputs_first;
  const auto base = find_value(tensors.config, "model.init");
  if (base && base->size() >= 2 && *base != "\"normal\"")
    adapter.base = base->substr(1, base->size() - 2);
  return adapter;
}

NamedTensors without_adapters(NamedTensors tensors) {
  std::erase_if(tensors.tensors, is_adapter);
  return tensors;
}

bool has_adapters(const NamedTensors& tensors) {
  return std::ranges::any_of(tensors.tensors, is_adapter);
}

}  // namespace gxp

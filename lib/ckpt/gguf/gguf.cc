#include "lib/ckpt/gguf/gguf.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/gguf/header.h"
#include "lib/ckpt/gguf/model.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/huggingface/model_tensors.h"

namespace gxp {
namespace {

constexpr const char* kArchitecture = "general.architecture";
constexpr const char* kModelName = "general.name";

// The value of a key as text; nothing of an array.
std::optional<std::string> gguf_text(const GgufValue& value) {
  return std::visit(
      [](const auto& typed) -> std::optional<std::string> {
        if constexpr (std::is_same_v<std::decay_t<decltype(typed)>, GgufArray>)
          return std::nullopt;
        else
          return fmt::format("{}", typed);
      },
      value);
}

std::map<std::string, std::string> gguf_metadata(const GgufHeader& header) {
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : header.keys) {
    if (auto text = gguf_text(value)) metadata.emplace(key, std::move(*text));
  }
  return metadata;
}

// Keys that are written anew with the model, and mean nothing without it.
bool tells_model(std::string_view key, const std::string& family) {
  return key == kArchitecture || key == "general.file_type" || key == "general.alignment" ||
         key.starts_with(family + ".") || key.starts_with("gxp.");
}

// A model of several files has tensors that this one lacks.
void refuse_split(const GgufHeader& header, const std::string& path) {
  const auto found = header.keys.find("split.count");
  const auto* const count =
      found == header.keys.end() ? nullptr : std::get_if<uint64_t>(&found->second);
  if (count != nullptr && *count > 1)
    fail(ErrorKind::kCorrupt,
         "read {}: it is one of a model's {} files; join them with llama-gguf-split --merge", path,
         *count);
}

struct GgufPlan {
  std::vector<GgufKey> keys;
  std::vector<NamedTensor> tensors;  // in the order of the file
};

GgufPlan plan_named_tensors(const NamedTensors& source) {
  if (const std::string reason = foreign_model(source); !reason.empty())
    fail(ErrorKind::kConfig,
         "write a GGUF file: gxp cannot write this model for llama.cpp ({}); convert the Hugging "
         "Face directory with llama.cpp's convert_hf_to_gguf.py",
         reason);
  const auto told = source.metadata.find(kArchitecture);
  GgufPlan plan;
  plan.keys = {{kArchitecture, told == source.metadata.end() ? "unknown" : told->second}};
  for (const NamedTensor& tensor : source.tensors) {
    if (tensor.info.role == Role::kWeight) plan.tensors.push_back(tensor);
  }
  return plan;
}

GgufPlan plan_model(const NamedTensors& source, const std::string& family) {
  if (!gguf_has_family(family))
    fail(ErrorKind::kConfig,
         "write a GGUF file: only {} models can be written, and the source is a {}",
         gguf_families_in_words(), family);
  const ModelConfig model = model_of(source.config);
  // The padding token matters in training alone.
  constexpr std::string_view kTold[] = {
      "family",    "vocab_size", "context",    "hidden",    "layers",     "heads",    "kv_heads",
      "head_size", "norm_eps",   "mlp_hidden", "tied_head", "rope_theta", "pad_token"};
  if (const std::string other = setting_beyond(model, kTold); !other.empty())
    fail(ErrorKind::kConfig, "write a GGUF file: {}, which gxp does not write for llama.cpp",
         other);
  const auto weights = weights_of_model(source, model, "write a GGUF file");
  return {gguf_keys(weights, model), to_gguf(weights, model)};
}

GgufPlan plan_gguf(const NamedTensors& source) {
  const std::string family = family_told(source.config);
  GgufPlan plan = family.empty() ? plan_named_tensors(source) : plan_model(source, family);
  const auto name = source.metadata.find(kModelName);
  if (name != source.metadata.end()) plan.keys.emplace_back(kModelName, name->second);
  for (const NamedTensor& tensor : plan.tensors) check_gguf_tensor(tensor.info);
  return plan;
}

}  // namespace

bool is_gguf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  return path.ends_with(".gguf") || begins_like_gguf(InputFile(path));
}

NamedTensors read_gguf(const std::string& path) {
  const auto file = std::make_shared<const InputFile>(path);  // owners: the readers of its tensors
  const GgufHeader header = read_gguf_header(*file);
  refuse_split(header, path);
  NamedTensors result{.format = "gguf"};
  for (size_t i = 0; i < header.tensors.size(); ++i) {
    const uint64_t offset = header.offsets[i];
    const size_t element = size_of(header.tensors[i].dtype);
    result.tensors.push_back({header.tensors[i], [=](uint64_t begin, Memory out) {
                                file->read(offset + begin * element, out);
                              }});
  }
  result.metadata = gguf_metadata(header);
  ModelConfig model;
  if (const Support taken = take_gguf_model(header, result.tensors, model); !taken) {
    log_warn("{}: {}: the tensors keep their names, and the model's settings are not read", path,
             taken.reason);
    return result;
  }
  result.config = settings_of(model);
  std::erase_if(result.metadata,
                [&](const auto& entry) { return tells_model(entry.first, model.family); });
  return result;
}

void check_fits_gguf(const NamedTensors& tensors) { plan_gguf(tensors); }

void write_gguf(const NamedTensors& tensors, const std::string& path) {
  const GgufPlan plan = plan_gguf(tensors);
  if (family_told(tensors.config).empty()) {
    log_warn(
        "the source does not describe its model: the GGUF file keeps the tensors' names, and no "
        "program can run it");
  } else {
    log_info(
        "the GGUF file has no tokenizer, since gxp stores none; llama.cpp needs one to run the "
        "model");
  }
  OutputFile file(path);
  file.write(make_gguf_header(plan.keys, plan.tensors));
  for (const NamedTensor& tensor : plan.tensors) {
    stream(tensor, [&](ConstMemory block) { file.write(block); });
    file.write(gguf_padding(file.bytes()));
  }
  file.close();
}

}  // namespace gxp

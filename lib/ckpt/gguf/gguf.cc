#include "lib/ckpt/gguf/gguf.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/gguf/header.h"
#include "lib/ckpt/gguf/model.h"
#include "lib/ckpt/gguf/tokenizer.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/huggingface/model_tensors.h"

namespace gxp {
namespace {

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
    if (key.starts_with(kTokenizerKeys) || key.starts_with("gxp.file.")) continue;
    if (auto text = gguf_text(value)) metadata.emplace(key, std::move(*text));
  }
  return metadata;
}

// Keys that are written anew with the model, and mean nothing without it.
bool tells_model(std::string_view key, const std::string& architecture) {
  return key == kArchitectureKey || key == "general.file_type" || key == "general.alignment" ||
         key.starts_with(architecture + ".") || key.starts_with("gxp.");
}

// A model of several files has tensors that this one lacks.
void refuse_split(const GgufHeader& header, const std::string& path) {
  const auto* const count = find_gguf_value<uint64_t>(header, "split.count");
  if (count != nullptr && *count > 1)
    fail(ErrorKind::kCorrupt,
         "read {}: it is one of a model's {} files; join them with llama-gguf-split --merge", path,
         *count);
}

GgufModel plan_named_tensors(const NamedTensors& source) {
  if (const std::string reason = foreign_model(source); !reason.empty())
    fail(ErrorKind::kConfig,
         "write a GGUF file: gxp cannot write this model for llama.cpp ({}); convert the Hugging "
         "Face directory with llama.cpp's convert_hf_to_gguf.py",
         reason);
  const auto told = source.metadata.find(kArchitectureKey);
  GgufModel plan;
  plan.keys = {{kArchitectureKey, told == source.metadata.end() ? "unknown" : told->second}};
  for (const NamedTensor& tensor : source.tensors) {
    if (tensor.info.role == Role::kWeight) plan.tensors.push_back(tensor);
  }
  return plan;
}

GgufModel plan_model(const NamedTensors& source) {
  const ModelConfig model = model_of(source.config);
  return make_gguf_model(weights_of_model(source, model, "write a GGUF file"), model);
}

GgufModel plan_gguf(const NamedTensors& source) {
  GgufModel plan =
      family_told(source.config).empty() ? plan_named_tensors(source) : plan_model(source);
  const auto name = source.metadata.find(kModelName);
  if (name != source.metadata.end()) plan.keys.emplace_back(kModelName, name->second);
  for (const NamedTensor& tensor : plan.tensors) check_gguf_tensor(tensor.info);
  return plan;
}

struct PlannedTokenizer {
  GgufKeys keys = {};
  std::vector<std::string> warnings = {};
  std::string told = {};  // for the log
};

// That of another GGUF file, unchanged.
PlannedTokenizer stored_tokenizer(const StoredTokenizer& stored) {
  std::vector<GgufKey> files;
  for (const auto& [name, text] : stored.files)
    if (name != "tokenizer.json") files.emplace_back(gguf_file_key(name), text);
  return {
      .keys = {stored.gguf_keys + encode_gguf_keys(files), stored.gguf_key_count + files.size()},
      .told = "the GGUF file has the tokenizer of the one that was read"};
}

PlannedTokenizer plan_tokenizer(const NamedTensors& source) {
  if (source.companions.empty() && !source.tokenizer.gguf_keys.empty())
    return stored_tokenizer(source.tokenizer);
  const auto size = find_value(source.config, "model.vocab_size");
  if (source.companions.empty() || !size)
    return {.told =
                "the GGUF file has no tokenizer, since the source has none; llama.cpp needs one "
                "to run the model, and --config DIR takes it from a Hugging Face directory"};
  const auto config = source.metadata.find(kConfigText);
  GgufTokenizer made =
      make_gguf_tokenizer(source.companions, config == source.metadata.end() ? "" : config->second,
                          model_of(source.config).vocab_size);
  const std::string from = parent_of(source.companions.front());
  return {.keys = {encode_gguf_keys(made.keys), made.keys.size()},
          .warnings = std::move(made.warnings),
          .told = made.is_there
                      ? fmt::format("the GGUF file has the tokenizer of {}", from)
                      : fmt::format("the GGUF file has no tokenizer, since {} has none; llama.cpp "
                                    "needs one to run the model",
                                    from)};
}

// llama.cpp reads the key of Phi-3's window and leaves it out.
void warn_of_window(const NamedTensors& source) {
  if (family_told(source.config) != "phi3") return;
  const ModelConfig model = model_of(source.config);
  if (model.window > 0 && model.window < model.context)
    log_warn(
        "llama.cpp computes a Phi-3 without its sliding window of {} positions: longer texts give "
        "other results there",
        model.window);
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
  result.tokenizer = read_gguf_tokenizer(header);
  ModelConfig model;
  if (const Support taken = take_gguf_model(header, result.tensors, model); !taken) {
    log_warn("{}: {}: the tensors keep their names, and the model's settings are not read", path,
             taken.reason);
    return result;
  }
  result.config = settings_of(model);
  const std::string architecture = result.metadata[kArchitectureKey];
  std::erase_if(result.metadata,
                [&](const auto& entry) { return tells_model(entry.first, architecture); });
  return result;
}

void check_fits_gguf(const NamedTensors& tensors) {
  plan_gguf(tensors);
  plan_tokenizer(tensors);
}

void write_gguf(const NamedTensors& tensors, const std::string& path) {
  const GgufModel plan = plan_gguf(tensors);
  if (family_told(tensors.config).empty())
    log_warn(
        "the source does not describe its model: the GGUF file keeps the tensors' names, and no "
        "program can run it");
  warn_of_window(tensors);
  const PlannedTokenizer tokenizer = plan_tokenizer(tensors);
  for (const std::string& warning : tokenizer.warnings) log_warn("{}", warning);
  log_info("{}", tokenizer.told);
  OutputFile file(path);
  const GgufKeys keys{encode_gguf_keys(plan.keys) + tokenizer.keys.encoded,
                      plan.keys.size() + tokenizer.keys.count};
  file.write(make_gguf_header(keys, plan.tensors));
  for (const NamedTensor& tensor : plan.tensors) {
    stream(tensor, [&](ConstMemory block) { file.write(block); });
    file.write(gguf_padding(file.bytes()));
  }
  file.close();
}

}  // namespace gxp

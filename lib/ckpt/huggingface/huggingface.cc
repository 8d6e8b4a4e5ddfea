#include "lib/ckpt/huggingface/huggingface.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/plural.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/config_spelling.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "lib/ckpt/huggingface/wrapped_names.h"
#include "lib/ckpt/safetensors/safetensors.h"
#include "lib/ckpt/torch/pt_file.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxConfigBytes = 16u << 20;
constexpr std::string_view kPrefix = "transformer.";

// What a directory may have besides weights and config.json, and every tool looks for.
constexpr std::array<std::string_view, 11> kCompanions = {
    "generation_config.json",  "tokenizer.json",      "tokenizer.model",   "tokenizer_config.json",
    "special_tokens_map.json", "vocab.json",          "vocab.txt",         "merges.txt",
    "added_tokens.json",       "chat_template.jinja", "chat_template.json"};

std::string config_path(const std::string& directory) { return directory + "/config.json"; }

// "transformer.h.0.attn.c_attn.weight" for "h.0.attn.c_attn.weight" and the like.
bool lacks_prefix(std::string_view name) {
  return name == "wte.weight" || name == "wpe.weight" || name.starts_with("h.") ||
         name.starts_with("ln_f.");
}

// The config.json that the tensors came with; "" if they came with none.
std::string config_text(const NamedTensors& tensors) {
  const auto text = tensors.metadata.find(kConfigText);
  return text == tensors.metadata.end() ? "" : text->second;
}

// GPT-J, MPT and others have some of GPT-2's names.
bool is_other_model(const NamedTensors& tensors) {
  const std::string text = config_text(tensors);
  if (text.empty()) return false;
  const Json type = parse_python_json(text, kConfigText).value("model_type", Json());
  return type.is_string() && type != "gpt2";
}

// The type of most elements that are numbers with a fraction, of those that config.json can name.
std::optional<StorageDType> main_dtype(const std::vector<NamedTensor>& tensors) {
  std::map<StorageDType, uint64_t> counts;
  for (const NamedTensor& tensor : tensors) {
    const StorageDType dtype = tensor.info.dtype;
    if (dtype == StorageDType::kF64 || dtype == StorageDType::kF32 || dtype == StorageDType::kF16 ||
        dtype == StorageDType::kBF16)
      counts[dtype] += tensor.info.count();
  }
  if (counts.empty()) return std::nullopt;
  return std::ranges::max_element(counts, {}, [](const auto& row) { return row.second; })->first;
}

std::vector<NamedTensor> weights_only(const NamedTensors& source) {
  std::vector<NamedTensor> weights;
  std::ranges::copy_if(source.tensors, std::back_inserter(weights),
                       [](const auto& tensor) { return tensor.info.role == Role::kWeight; });
  return weights;
}

// A directory's config.json, or the file itself.
std::string config_at(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) ? config_path(path) : path;
}

// The model.* settings of config.json `file`, whose text this is.
KeyValues computed_settings(const std::string& text, const std::string& file) {
  if (const std::string obstacle = describe_obstacle(text, file); !obstacle.empty())
    fail(ErrorKind::kConfig, "read {}: gxp does not compute this model: {}", file, obstacle);
  return settings_of(model_of(read_model_config(text, file)));
}

// Settings that no shape shows and of which the source tells another value than config.json `file`.
void check_told(const KeyValues& told, const ModelConfig& model, const std::string& file) {
  constexpr std::array<std::string_view, 6> kKeys = {"model.heads",      "model.kv_heads",
                                                     "model.head_size",  "model.norm_eps",
                                                     "model.rope_theta", "model.rope_scaling"};
  for (const std::string_view key : kKeys) {
    const auto value = find_value(told, key);
    RunConfig run;
    run.model = model;
    if (!value) continue;
    const std::string problem = take_settings("model", {{std::string(key), *value}}, run);
    if (!problem.empty() || run.model.resolved() != model.resolved())
      fail(ErrorKind::kConfig,
           "take the tensors for the model of {}: their source has {} = {}, which is not that of "
           "this model",
           file, key, *value);
  }
}

void copy_companions(const std::vector<std::string>& files, const std::string& directory) {
  std::vector<std::string> names;
  for (const std::string& file : files) {
    names.push_back(std::filesystem::path(file).filename());
    copy_file(file, fmt::format("{}/{}", directory, names.back()));
  }
  if (!names.empty()) log_info("copied from {}: {}", parent_of(files.front()), joined(names, ", "));
}

// Of a GGUF file, which may hold another program's tokenizer alone.
void write_stored(const StoredTokenizer& tokenizer, const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& [name, text] : tokenizer.files) {
    names.push_back(name);
    write_text(fmt::format("{}/{}", directory, name), text);
  }
  if (!names.empty()) log_info("written as the GGUF file holds them: {}", joined(names, ", "));
  const bool is_whole =
      tokenizer.files.contains("tokenizer.json") || tokenizer.files.contains("vocab.json");
  if (!tokenizer.gguf_keys.empty() && !is_whole)
    log_info("the tokenizer stays in the GGUF file, which does not hold the files it was made of");
}

// What is written for a source, but for its companions.
struct ModelDirectory {
  NamedTensors tensors;
  std::string config;
};

ModelDirectory make_directory(const NamedTensors& source) {
  const std::string original = config_text(source);
  // A model that gxp cannot compute is written as it was read.
  const bool as_read = !original.empty() && !find_value(source.config, "model.vocab_size");
  const ModelConfig model = as_read ? ModelConfig() : model_of(source.config);
  NamedTensors wanted = {.config = source.config, .metadata = source.metadata, .step = source.step};
  wanted.metadata.erase(kConfigText);
  wanted.tensors = as_read ? weights_only(source)
                           : weights_of_model(source, model, "write a Hugging Face directory");
  const auto dtype = main_dtype(wanted.tensors);
  std::string config = as_read
                           ? refresh_model_config(original, dtype)
                           : make_model_config(model, original, dtype.value_or(StorageDType::kF32));
  check_head(parse_python_json(config, kConfigText), wanted, "the source");
  return {std::move(wanted), std::move(config)};
}

}  // namespace

bool is_huggingface(const std::string& path) {
  return path_exists(config_path(path)) && (is_safetensors(path) || is_pt(path));
}

std::span<const std::string_view> companion_names() { return kCompanions; }

bool is_huggingface_file(std::string_view name) {
  return name == "config.json" || is_safetensors_file(name) ||
         std::ranges::find(kCompanions, name) != kCompanions.end();
}

NamedTensors read_huggingface(const std::string& path) {
  NamedTensors result = is_safetensors(path) ? read_safetensors(path) : read_pt(path);
  result.format = "huggingface";
  const std::string file = config_path(path);
  const std::string text = read_text(file, kMaxConfigBytes);
  result.config = read_model_config(text, file);
  if (!result.config.empty()) unwrap_names(result);
  check_head(parse_python_json(text, file), result, file);
  result.metadata[kConfigText] = text;
  if (!foreign_model(result).empty()) result.config.clear();
  if (!result.config.empty()) {
    const ModelConfig model = model_of(result.config);
    result = with_family_names(std::move(result), model);
  }
  result.companions = companions_of(path);
  return result;
}

std::vector<std::string> companions_of(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (const std::string_view name : kCompanions) {
    const std::string file = fmt::format("{}/{}", path, name);
    if (std::filesystem::is_regular_file(file, error)) found.push_back(file);
  }
  return found;
}

uint64_t verify_huggingface(const std::string& path) {
  return is_safetensors(path) ? 0 : verify_pt(path);
}

void add_neighbouring_config(const std::string& path, NamedTensors& tensors) {
  std::error_code error;
  const std::string file = config_path(parent_of(path));
  if (find_value(tensors.config, "model.family") || tensors.metadata.contains(kConfigText) ||
      !std::filesystem::is_regular_file(path, error) || !path_exists(file))
    return;
  const std::string text = read_text(file, kMaxConfigBytes);
  if (!to_object(parse_python_json(text, file), "read " + file).contains("model_type")) return;
  const KeyValues settings = read_model_config(text, file);
  tensors.config.insert(tensors.config.end(), settings.begin(), settings.end());
  tensors.metadata[kConfigText] = text;
  if (!settings.empty()) tensors = with_family_names(std::move(tensors), model_of(settings));
}

KeyValues model_settings_at(const std::string& path) {
  const std::string file = config_at(path);
  return computed_settings(read_text(file, kMaxConfigBytes), file);
}

NamedTensors as_model_of(const std::string& path, NamedTensors tensors) {
  std::error_code error;
  const std::string file = config_at(path);
  const std::string text = read_text(file, kMaxConfigBytes);
  const KeyValues settings = computed_settings(text, file);
  const ModelConfig model = model_of(settings);
  check_told(tensors.config, model, file);
  unwrap_names(tensors);
  std::erase_if(tensors.config, [](const auto& pair) { return pair.first.starts_with("model."); });
  tensors.config.insert(tensors.config.end(), settings.begin(), settings.end());
  tensors.metadata[kConfigText] = text;
  tensors = with_family_names(std::move(tensors), model);
  if (const std::string mismatch = model_mismatch(tensors, model); !mismatch.empty())
    fail(ErrorKind::kConfig, "take the tensors for the model of {}: {}", file, mismatch);
  if (std::filesystem::is_directory(path, error)) tensors.companions = companions_of(path);
  if (!tensors.companions.empty()) tensors.tokenizer = {};
  return tensors;
}

void write_huggingface(const NamedTensors& source, const std::string& directory,
                       const WriteOptions& options) {
  const ModelDirectory model = make_directory(source);
  write_safetensors_directory(model.tensors, directory, options);
  write_text(config_path(directory), model.config);
  copy_companions(source.companions, directory);
  write_stored(source.tokenizer, directory);
}

std::vector<PlannedFile> plan_huggingface(const NamedTensors& source, const std::string&,
                                          const WriteOptions& options) {
  const ModelDirectory model = make_directory(source);
  std::vector<PlannedFile> files = plan_safetensors(model.tensors, "", options);
  files.push_back({"config.json", 0, model.config.size()});
  for (const std::string& file : source.companions)
    files.push_back({std::filesystem::path(file).filename(), 0, InputFile(file).bytes()});
  for (const auto& [name, text] : source.tokenizer.files) files.push_back({name, 0, text.size()});
  return files;
}

bool is_gpt2_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

NamedTensors with_gpt2_prefix(NamedTensors tensors) {
  if (is_other_model(tensors) || find_tensor(tensors, "wte.weight") == nullptr) return tensors;
  for (NamedTensor& tensor : tensors.tensors) {
    if (lacks_prefix(tensor.info.name)) tensor.info.name.insert(0, kPrefix);
  }
  rename_record(tensors.optimizer, [](const std::string& name) {
    return std::optional(lacks_prefix(name) ? std::string(kPrefix) + name : name);
  });
  return tensors;
}

NamedTensors with_gpt2_names(NamedTensors tensors) {
  if (is_other_model(tensors)) return tensors;
  tensors = with_gpt2_prefix(std::move(tensors));
  const NamedTensor* table = find_tensor(tensors, "transformer.wte.weight");
  if (table == nullptr) return tensors;
  const NamedTensor* head = find_tensor(tensors, kHeadName);
  const bool is_own = find_value(tensors.config, "model.tied_head") == "false";
  const bool is_table = !is_own && head != nullptr && are_equal(*head, *table);
  std::erase_if(tensors.tensors, [&](const NamedTensor& tensor) {
    return (is_table && tensor.info.name == kHeadName) || is_gpt2_mask(tensor.info.name);
  });
  return tensors;
}

}  // namespace gxp

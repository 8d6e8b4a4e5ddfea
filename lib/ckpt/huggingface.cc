#include "lib/ckpt/huggingface.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "lib/arch/architecture.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/json.h"
#include "lib/ckpt/safetensors.h"
#include "lib/config/value.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxConfigBytes = 16u << 20;
constexpr std::string_view kPrefix = "transformer.";

struct IntegerKey {
  const char* theirs;
  const char* ours;
  int ModelConfig::*member;
};

constexpr std::array<IntegerKey, 5> kIntegers = {
    {{"vocab_size", "model.vocab_size", &ModelConfig::vocab_size},
     {"n_positions", "model.context", &ModelConfig::context},
     {"n_embd", "model.hidden", &ModelConfig::hidden},
     {"n_layer", "model.layers", &ModelConfig::layers},
     {"n_head", "model.heads", &ModelConfig::heads}}};

std::string config_path(const std::string& directory) { return directory + "/config.json"; }

// What keeps gxp from computing the model of this config.json; "" if nothing does.
std::string obstacle(const Json& config) {
  const auto is = [&](const char* key, const Json& wanted) {
    return !config.contains(key) || config[key].is_null() || config[key] == wanted;
  };
  if (config.value("model_type", Json()) != "gpt2") return "model_type is not gpt2";
  for (const IntegerKey& key : kIntegers) {
    const Json value = config.value(key.theirs, Json());
    if (!value.is_number_unsigned() || value > INT32_MAX)
      return fmt::format("{} is no positive number", key.theirs);
  }
  if (!is("activation_function", "gelu_new")) return "activation_function is not gelu_new";
  if (!is("n_inner", 4 * config["n_embd"].get<uint64_t>())) return "n_inner is not 4 * n_embd";
  if (!is("scale_attn_weights", true)) return "scale_attn_weights is off";
  if (!is("scale_attn_by_inverse_layer_idx", false)) return "attention is scaled by layer";
  if (!is("tie_word_embeddings", true)) return "tie_word_embeddings is off";
  const Json eps = config.value("layer_norm_epsilon", Json(1e-5));
  return eps.is_number() ? "" : "layer_norm_epsilon is no number";
}

KeyValues read_config(const std::string& path) {
  const Json config = parse_json(read_text(path, kMaxConfigBytes), path);
  to_object(config, "read " + path);
  if (const std::string reason = obstacle(config); !reason.empty()) {
    log_warn("{}: {}: the tensors are read, the model's settings are not", path, reason);
    return {};
  }
  KeyValues pairs = {{"model.family", "\"gpt2\""}};
  for (const IntegerKey& key : kIntegers)
    pairs.emplace_back(key.ours, to_toml(config[key.theirs].get<int64_t>()));
  pairs.emplace_back("model.norm_eps", to_toml(config.value("layer_norm_epsilon", 1e-5)));
  return pairs;
}

template <class Number>
Number parse_setting(const KeyValues& config, const char* key) {
  const auto text = find_value(config, key);
  if (!text)
    fail(
        ErrorKind::kConfig,
        "write a Hugging Face directory: the source does not tell {}; convert from gxp's format or "
        "from a directory with a config.json of GPT-2",
        key);
  Number number{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size())
    fail(ErrorKind::kConfig, "write a Hugging Face directory: {} is '{}', no number", key, *text);
  return number;
}

ModelConfig model_of(const KeyValues& config) {
  ModelConfig model;
  const auto family = find_value(config, "model.family");
  if (family && *family != "\"gpt2\"")
    fail(ErrorKind::kConfig, "write a Hugging Face directory: model.family is {}, not gpt2",
         *family);
  for (const IntegerKey& key : kIntegers) model.*key.member = parse_setting<int>(config, key.ours);
  model.norm_eps = parse_setting<double>(config, "model.norm_eps");
  return model;
}

const char* torch_dtype(StorageDType dtype) {
  switch (dtype) {
    case StorageDType::kF64:
      return "float64";
    case StorageDType::kF16:
      return "float16";
    case StorageDType::kBF16:
      return "bfloat16";
    default:
      return "float32";
  }
}

std::string make_config(const ModelConfig& model, StorageDType dtype) {
  nlohmann::ordered_json config = {{"architectures", {"GPT2LMHeadModel"}}, {"model_type", "gpt2"}};
  for (const IntegerKey& key : kIntegers) config[key.theirs] = model.*key.member;
  config["layer_norm_epsilon"] = model.norm_eps;
  config["activation_function"] = "gelu_new";
  config["attn_pdrop"] = config["embd_pdrop"] = config["resid_pdrop"] = 0.0;
  config["tie_word_embeddings"] = true;
  config["bos_token_id"] = config["eos_token_id"] = nullptr;  // the defaults are of 50,257 tokens
  config["dtype"] = config["torch_dtype"] = torch_dtype(dtype);  // transformers 5 and 4
  return config.dump(2) + "\n";
}

// "transformer.h.0.attn.c_attn.weight" for "h.0.attn.c_attn.weight" and the like.
bool lacks_prefix(std::string_view name) {
  return name == "wte.weight" || name == "wpe.weight" || name.starts_with("h.") ||
         name.starts_with("ln_f.");
}

bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

bool equal(const NamedTensor& a, const NamedTensor& b) {
  return a.info.shape == b.info.shape && a.info.dtype == b.info.dtype &&
         sha256_hex(a) == sha256_hex(b);
}

}  // namespace

bool is_huggingface(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(config_path(path), error) && is_safetensors(path);
}

NamedTensors read_huggingface(const std::string& path) {
  NamedTensors result = read_safetensors(path);
  result.format = "huggingface";
  result.config = read_config(config_path(path));
  return result;
}

void write_huggingface(const NamedTensors& source, const std::string& directory,
                       uint64_t shard_bytes) {
  const ModelConfig model = model_of(source.config);
  const NamedTensors tensors = with_gpt2_names(source);
  NamedTensors wanted = {.tensors = {}, .config = source.config, .step = source.step};
  for (const UnitSpec& unit : make_architecture(model).units) {
    for (const TensorSpec& spec : unit.tensors)
      wanted.tensors.push_back(
          require_weight(tensors, spec.name, {spec.shape.begin(), spec.shape.end()}, "the source"));
  }
  write_safetensors_directory(wanted, directory, shard_bytes);
  write_text(config_path(directory), make_config(model, wanted.tensors.front().info.dtype));
}

NamedTensors with_gpt2_names(NamedTensors tensors) {
  if (find_tensor(tensors, "wte.weight") != nullptr) {
    for (NamedTensor& tensor : tensors.tensors) {
      if (lacks_prefix(tensor.info.name)) tensor.info.name.insert(0, kPrefix);
    }
  }
  const NamedTensor* table = find_tensor(tensors, "transformer.wte.weight");
  if (table == nullptr) return tensors;
  const NamedTensor* head = find_tensor(tensors, "lm_head.weight");
  if (head != nullptr && !equal(*head, *table))
    fail(ErrorKind::kConfig,
         "read GPT-2 weights: lm_head.weight is not transformer.wte.weight; an untied head is not "
         "supported");
  std::erase_if(tensors.tensors, [](const NamedTensor& tensor) {
    return tensor.info.name == "lm_head.weight" || is_mask(tensor.info.name);
  });
  return tensors;
}

}  // namespace gxp

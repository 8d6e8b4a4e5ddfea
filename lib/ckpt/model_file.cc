#include "lib/ckpt/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "lib/base/error.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/json.h"
#include "lib/ckpt/safetensors.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxModelFileBytes = 16u << 20;
constexpr uint64_t kMostOfASize = 1 << 24;
constexpr double kMostParameters = 1e15;

struct ConfigReader {
  const Json& json;
  std::string where;

  // A size of the model; `absent` if the key is missing or null, an error if that is 0.
  [[nodiscard]] uint64_t size(const char* key, uint64_t absent = 0) const {
    const auto found = json.find(key);
    if (absent != 0 && (found == json.end() || found->is_null())) return absent;
    const uint64_t value = to_unsigned(member(json, key, where), where + ": " + key);
    if (value == 0 || value > kMostOfASize)
      fail(ErrorKind::kConfig, "{}: {} is {}; must be from 1 to {}", where, key, value,
           kMostOfASize);
    return value;
  }
  [[nodiscard]] bool flag(const char* key, bool absent) const {
    const auto found = json.find(key);
    if (found == json.end() || found->is_null()) return absent;
    if (!found->is_boolean())
      fail(ErrorKind::kCorrupt, "{}: {} is neither true nor false", where, key);
    return found->get<bool>();
  }
};

PublishedModel read_gpt2(const ConfigReader& config) {
  const uint64_t hidden = config.size("n_embd");
  const uint64_t heads = config.size("n_head");
  return {.kind = BlockKind::kGpt,
          .layers = config.size("n_layer"),
          .hidden = hidden,
          .heads = heads,
          .key_value_heads = heads,
          .head_size = hidden / heads,
          .mlp = config.size("n_inner", 4 * hidden),
          .vocabulary = config.size("vocab_size"),
          .positions = config.size("n_positions"),
          .tied_head = config.flag("tie_word_embeddings", true)};
}

// What the families of Llama's kin do differently, and what they have where the file is silent.
struct LlamaKin {
  bool tied_head = false;
  bool qkv_bias = false;    // always, whatever attention_bias says
  bool norm_heads = false;  // queries and keys
};

PublishedModel read_llama_kin(const ConfigReader& config, const LlamaKin& kin) {
  const uint64_t hidden = config.size("hidden_size");
  const uint64_t heads = config.size("num_attention_heads");
  const bool biased = config.flag("attention_bias", false);
  return {.kind = BlockKind::kLlama,
          .layers = config.size("num_hidden_layers"),
          .hidden = hidden,
          .heads = heads,
          .key_value_heads = config.size("num_key_value_heads", heads),
          .head_size = config.size("head_dim", std::max<uint64_t>(hidden / heads, 1)),
          .mlp = config.size("intermediate_size"),
          .vocabulary = config.size("vocab_size"),
          .positions = config.size("max_position_embeddings"),
          .tied_head = config.flag("tie_word_embeddings", kin.tied_head),
          .qkv_bias = kin.qkv_bias || biased,
          .output_bias = biased && !kin.qkv_bias,
          .mlp_bias = config.flag("mlp_bias", false),
          .query_key_norm = kin.norm_heads};
}

template <LlamaKin kKin>
PublishedModel read_kin(const ConfigReader& config) {
  return read_llama_kin(config, kKin);
}

struct Family {
  std::string_view name;  // model_type
  PublishedModel (*read)(const ConfigReader& config);
};

constexpr std::array kNamedFamilies = {
    Family{"gpt2", read_gpt2},
    Family{"llama", read_kin<LlamaKin{}>},
    Family{"mistral", read_kin<LlamaKin{}>},
    Family{"qwen2", read_kin<LlamaKin{.qkv_bias = true}>},
    Family{"qwen3", read_kin<LlamaKin{.norm_heads = true}>},
    Family{"gemma", read_kin<LlamaKin{.tied_head = true}>},
};

const Family& family_of(const Json& config, const std::string& where) {
  const std::string type = to_text(member(config, "model_type", where), where + ": model_type");
  std::vector<std::string_view> names;
  for (const Family& family : kNamedFamilies) {
    if (family.name == type) return family;
    names.push_back(family.name);
  }
  fail(ErrorKind::kConfig,
       "{}: model_type '{}' is not supported, of Hugging Face's {} are; use --params with the "
       "number of parameters, or the weights' .safetensors",
       where, type, fmt::join(names, ", "));
}

// Refuses what would overflow before it is multiplied.
void check_shape(const PublishedModel& model, const std::string& where) {
  if (model.head_size == 0 || model.heads % model.key_value_heads != 0)
    fail(ErrorKind::kConfig, "{}: {} attention heads and {} of keys and values make no model",
         where, model.heads, model.key_value_heads);
  const double widest = double(model.heads * model.head_size + model.mlp);
  const double count = double(model.layers) * 4 * double(model.hidden) * widest +
                       2 * double(model.vocabulary) * double(model.hidden);
  if (count > kMostParameters)
    fail(ErrorKind::kConfig, "{}: the sizes make {:.2g} parameters, at most {:.0e} can be planned",
         where, count, kMostParameters);
}

ModelFile read_config(const std::string& path) {
  const Json json = parse_json(read_text(path, kMaxModelFileBytes), path);
  const std::string where = "read " + path;
  to_object(json, where);
  const Family& family = family_of(json, where);
  ModelFile file{.path = path, .family = std::string(family.name)};
  file.shape = family.read({json, where});
  check_shape(*file.shape, where);
  file.parameters = parameter_count(*file.shape);
  for (const char* key : {"dtype", "torch_dtype"}) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_string()) file.dtype = found->get<std::string>();
  }
  return file;
}

ModelFile read_weights(const std::string& path) {
  ModelFile file{.path = path};
  uint64_t bytes = 0;
  std::map<StorageDType, uint64_t> elements;
  for (const NamedTensor& tensor : read_safetensors(path).tensors) {
    file.parameters += tensor.info.count();
    bytes += tensor.info.bytes();
    elements[tensor.info.dtype] += tensor.info.count();
  }
  if (file.parameters == 0) fail(ErrorKind::kCorrupt, "read {}: there is no tensor in it", path);
  file.stored_bytes = bytes;
  const auto most =
      std::ranges::max_element(elements, {}, [](const auto& row) { return row.second; });
  file.dtype = std::string(to_string(most->first));
  return file;
}

ModelFile read_folder(const std::string& path) {
  const std::string config = fs::path(path) / "config.json";
  const bool weights = is_safetensors(path);
  if (!path_exists(config)) {
    if (weights) return read_weights(path);
    fail(ErrorKind::kIo,
         "read {}: the folder has neither config.json nor model.safetensors nor its index; name "
         "one with either",
         path);
  }
  ModelFile file = read_config(config);
  if (!weights) return file;
  const ModelFile stored = read_weights(path);
  file.stored_bytes = stored.stored_bytes;
  file.dtype = stored.dtype;
  return file;
}

}  // namespace

bool names_model_file(const std::string& text) {
  std::error_code error;
  return text.find('/') != std::string::npos || text.ends_with(".json") ||
         text.ends_with(".safetensors") || fs::exists(text, error);
}

ModelFile read_model_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return read_folder(path);
  return is_safetensors(path) ? read_weights(path) : read_config(path);
}

}  // namespace gxp

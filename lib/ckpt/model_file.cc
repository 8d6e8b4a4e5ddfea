#include "lib/ckpt/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/find_row.h"
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

  // A size of the model; 0 if it is `optional` and missing or null, an error if it is required.
  [[nodiscard]] uint64_t size(std::string_view name, bool optional = false) const {
    const std::string key(name);
    const auto found = json.find(key);
    if (optional && (found == json.end() || found->is_null())) return 0;
    const uint64_t value = to_unsigned(member(json, key.c_str(), where), where + ": " + key);
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

// A family of Hugging Face's whose config.json has the keys of one that gxp trains, and what it has
// otherwise.
struct Kin {
  std::string_view name;    // model_type
  std::string_view family;  // of lib/arch/family.h
  bool tied_head = false;   // where the file is silent
  bool qkv_bias = false;    // always, whatever attention_bias says
  bool norm_heads = false;  // queries and keys
};

constexpr std::array kKin = {
    Kin{.name = "gpt2", .family = "gpt2", .tied_head = true},
    Kin{.name = "llama", .family = "llama"},
    Kin{.name = "mistral", .family = "llama"},
    Kin{.name = "qwen2", .family = "llama", .qkv_bias = true},
    Kin{.name = "qwen3", .family = "llama", .norm_heads = true},
    Kin{.name = "gemma", .family = "llama", .tied_head = true},
};

PublishedModel read_shape(const ConfigReader& config, const Kin& kin) {
  const Family& family = find_family(kin.family);
  const HuggingFaceFamily& theirs = family.huggingface;
  ModelConfig model{.family = std::string(kin.family)};
  for (const HuggingFaceFamily::Size& size : theirs.sizes)
    model.*size.member = int(config.size(size.theirs, size.optional));
  const uint64_t mlp = theirs.mlp_width.empty() ? 0 : config.size(theirs.mlp_width, true);
  const bool biased = config.flag("attention_bias", false);
  return {.kind = family.block,
          .layers = uint64_t(model.layers),
          .hidden = uint64_t(model.hidden),
          .heads = uint64_t(model.heads),
          .key_value_heads = uint64_t(model.kv_head_count()),
          .head_size = uint64_t(model.channels_per_head()),
          .mlp = mlp > 0 ? mlp : uint64_t(model.mlp_width()),
          .vocabulary = uint64_t(model.vocab_size),
          .positions = uint64_t(model.context),
          .tied_head = config.flag("tie_word_embeddings", kin.tied_head),
          .qkv_bias = kin.qkv_bias || biased,
          .output_bias = biased && !kin.qkv_bias,
          .mlp_bias = config.flag("mlp_bias", false),
          .query_key_norm = kin.norm_heads};
}

const Kin& kin_of(const Json& config, const std::string& where) {
  const std::string type = to_text(member(config, "model_type", where), where + ": model_type");
  const auto found = std::ranges::find(kKin, type, &Kin::name);
  if (found != kKin.end()) return *found;
  fail(ErrorKind::kConfig,
       "{}: model_type '{}' is not supported, of Hugging Face's {} are; use --params with the "
       "number of parameters, or the weights' .safetensors",
       where, type, fmt::join(row_names(kKin), ", "));
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
  const Json json = parse_python_json(read_text(path, kMaxModelFileBytes), path);
  const std::string where = "read " + path;
  to_object(json, where);
  const Kin& kin = kin_of(json, where);
  ModelFile file{.path = path, .family = std::string(kin.name)};
  file.shape = read_shape({json, where}, kin);
  check_shape(*file.shape, where);
  file.parameters = parameter_count(*file.shape);
  for (const char* key : {"dtype", "torch_dtype"}) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_string()) file.dtype = found->get<std::string>();
  }
  return file;
}

ModelFile read_stored(const std::string& path) {
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
    if (weights) return read_stored(path);
    fail(ErrorKind::kIo,
         "read {}: the folder has neither config.json nor model.safetensors nor its index; name "
         "one with either",
         path);
  }
  ModelFile file = read_config(config);
  if (!weights) return file;
  const ModelFile stored = read_stored(path);
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
  return is_safetensors(path) ? read_stored(path) : read_config(path);
}

}  // namespace gxp

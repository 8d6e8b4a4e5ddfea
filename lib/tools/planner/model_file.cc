#include "lib/tools/planner/model_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/find_row.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/json.h"
#include "lib/ckpt/safetensors/safetensors.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxModelFileBytes = 16u << 20;
constexpr uint64_t kMostOfASize = 1 << 24;
constexpr double kMostParameters = 1e15;

struct ConfigReader {
  const Json& json;
  std::string where;

  [[nodiscard]] bool is_null(std::string_view name) const {
    const auto found = json.find(std::string(name));
    return found != json.end() && found->is_null();
  }
  // A size of the model; `absent` without the key, an error for null.
  [[nodiscard]] uint64_t size(std::string_view name, uint64_t absent) const {
    const std::string key(name);
    if (!json.contains(key)) return absent;
    const uint64_t value = to_unsigned(json[key], where + ": " + key);
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

// A family of Hugging Face's whose config.json has the keys of a family that gxp trains: how its
// models differ, and the defaults of its class for missing keys.
struct RelatedFamily {
  std::string_view name;    // model_type
  std::string_view stem;    // of its classes
  std::string_view family;  // of lib/arch/family.h
  ModelConfig defaults;     // kv_heads, head_size, mlp_hidden 0: they follow from the others
  bool tied_head = false;
  bool qkv_bias = false;            // queries, keys and values always have biases
  bool norm_heads = false;          // queries and keys have norms
  bool has_attention_bias = false;  // the key attention_bias: of queries, keys, values, output
  bool has_mlp_bias = false;        // the key mlp_bias
};

ModelConfig sizes(int vocabulary, int positions, int hidden, int layers, int heads) {
  ModelConfig model;
  model.vocab_size = vocabulary;
  model.context = positions;
  model.hidden = hidden;
  model.layers = layers;
  model.heads = heads;
  model.kv_heads = model.head_size = model.mlp_hidden = 0;
  return model;
}

ModelConfig llama_sizes(ModelConfig model, int kv_heads, int head_size, int mlp) {
  model.kv_heads = kv_heads;
  model.head_size = head_size;
  model.mlp_hidden = mlp;
  return model;
}

const std::vector<RelatedFamily>& all_kin() {
  static const std::vector<RelatedFamily> kKin = {
      {.name = "gpt2",
       .stem = "GPT2",
       .family = "gpt2",
       .defaults = sizes(50257, 1024, 768, 12, 12),
       .tied_head = true},
      {.name = "llama",
       .stem = "Llama",
       .family = "llama",
       .defaults = llama_sizes(sizes(32000, 2048, 4096, 32, 32), 0, 0, 11008),
       .has_attention_bias = true,
       .has_mlp_bias = true},
      {.name = "mistral",
       .stem = "Mistral",
       .family = "llama",
       .defaults = llama_sizes(sizes(32000, 131072, 4096, 32, 32), 8, 0, 14336)},
      {.name = "qwen2",
       .stem = "Qwen2",
       .family = "llama",
       .defaults = llama_sizes(sizes(151936, 32768, 4096, 32, 32), 32, 0, 22016),
       .qkv_bias = true},
      {.name = "qwen3",
       .stem = "Qwen3",
       .family = "llama",
       .defaults = llama_sizes(sizes(151936, 32768, 4096, 32, 32), 32, 128, 22016),
       .norm_heads = true,
       .has_attention_bias = true},
      {.name = "gemma",
       .stem = "Gemma",
       .family = "llama",
       .defaults = llama_sizes(sizes(256000, 8192, 3072, 28, 16), 16, 256, 24576),
       .tied_head = true,
       .has_attention_bias = true},
  };
  return kKin;
}

// The head of a class, by what follows the stem of its name.
struct HeadOfClass {
  std::string_view name;  // of the class, behind the stem
  bool is_language_model = false;
  uint64_t labels = 0;
  bool has_labels = false;  // as many as the file says
  bool has_bias = false;
};
constexpr std::array kHeadsOfClasses = {
    HeadOfClass{.name = "ForCausalLM", .is_language_model = true},
    HeadOfClass{.name = "LMHeadModel", .is_language_model = true},
    HeadOfClass{.name = "Model"},
    HeadOfClass{.name = "ForSequenceClassification", .has_labels = true},
    HeadOfClass{.name = "ForTokenClassification", .has_labels = true, .has_bias = true},
    HeadOfClass{.name = "ForQuestionAnswering", .labels = 2, .has_bias = true},
};

// The class that `architectures` names; "": none.
std::string class_of(const ConfigReader& config) {
  const auto found = config.json.find("architectures");
  if (found == config.json.end() || found->is_null() || (found->is_array() && found->empty()))
    return "";
  const Json& first = found->is_array() ? found->front() : *found;
  return to_text(first, config.where + ": architectures");
}

const HeadOfClass& head_of(const ConfigReader& config, const std::string& name) {
  for (const HeadOfClass& head : kHeadsOfClasses) {
    const auto is_class = [&](const RelatedFamily& kin) {
      return name == std::string(kin.stem) + std::string(head.name);
    };
    if (name.empty() || std::ranges::any_of(all_kin(), is_class)) return head;
  }
  fail(ErrorKind::kConfig,
       "{}: architectures is {}, whose head is unknown; known: {}; use --params with the number of "
       "parameters, or the weights' .safetensors",
       config.where, name, joined(row_names(kHeadsOfClasses), ", "));
}

// num_labels, or as many as id2label names, or 2.
uint64_t label_count(const ConfigReader& config) {
  const auto names = config.json.find("id2label");
  const bool has_names = names != config.json.end() && names->is_object() && !names->empty();
  return config.is_null("num_labels") || !config.json.contains("num_labels")
             ? (has_names ? names->size() : 2)
             : config.size("num_labels", 2);
}

// GPT-2's class takes these names too.
std::string_view other_name(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames = {
      {{"n_positions", "max_position_embeddings"},
       {"n_embd", "hidden_size"},
       {"n_layer", "num_hidden_layers"},
       {"n_head", "num_attention_heads"}}};
  for (const auto& [ours, other] : kNames) {
    if (key == ours) return other;
  }
  return key;
}

// The sizes of the model; those that config.json lacks are the class's own.
ModelConfig read_sizes(const ConfigReader& config, const RelatedFamily& kin) {
  ModelConfig model = kin.defaults;
  model.family = kin.family;
  for (const HuggingFaceFamily::Size& size : find_family(kin.family).huggingface.sizes) {
    int& member = model.*size.member;
    if (size.optional && config.is_null(size.theirs))
      member = 0;
    else
      member =
          int(config.size(size.theirs, config.size(other_name(size.theirs), uint64_t(member))));
  }
  return model;
}

PublishedModel read_shape(const ConfigReader& config, const RelatedFamily& kin) {
  const Family& family = find_family(kin.family);
  const HuggingFaceFamily& theirs = family.huggingface;
  if (family.name == "gpt2" && config.flag("add_cross_attention", false))
    fail(
        ErrorKind::kConfig,
        "{}: add_cross_attention is true, and attention to an encoder is not counted; use --params "
        "with the number of parameters, or the weights' .safetensors",
        config.where);
  const ModelConfig model = read_sizes(config, kin);
  const bool has_width = !theirs.mlp_width.empty() && !config.is_null(theirs.mlp_width);
  const auto width = uint64_t(model.mlp_width());
  const bool biased = kin.has_attention_bias && config.flag("attention_bias", false);
  const std::string name = class_of(config);
  const HeadOfClass& head = head_of(config, name);
  return {.kind = family.block,
          .layers = uint64_t(model.layers),
          .hidden = uint64_t(model.hidden),
          .heads = uint64_t(model.heads),
          .key_value_heads = uint64_t(model.kv_head_count()),
          .head_size = uint64_t(model.channels_per_head()),
          .mlp = has_width ? config.size(theirs.mlp_width, width) : width,
          .vocabulary = uint64_t(model.vocab_size),
          .positions = uint64_t(model.context),
          .tied_head = config.flag("tie_word_embeddings", kin.tied_head),
          .qkv_bias = kin.qkv_bias || biased,
          .output_bias = biased,
          .mlp_bias = kin.has_mlp_bias && config.flag("mlp_bias", false),
          .query_key_norm = kin.norm_heads,
          .has_language_head = head.is_language_model,
          .labels = head.has_labels ? label_count(config) : head.labels,
          .label_bias = head.has_bias};
}

const RelatedFamily& kin_of(const Json& config, const std::string& where) {
  const std::string type = to_text(member(config, "model_type", where), where + ": model_type");
  const auto found = std::ranges::find(all_kin(), type, &RelatedFamily::name);
  if (found != all_kin().end()) return *found;
  fail(ErrorKind::kConfig,
       "{}: model_type '{}' is not supported; supported: {}; use --params with the number of "
       "parameters, or the weights' .safetensors",
       where, type, joined(row_names(all_kin()), ", "));
}

// Refuses what would overflow before it is multiplied.
void check_shape(const PublishedModel& model, const ConfigReader& config) {
  const std::string& where = config.where;
  if (model.head_size == 0 || model.heads % model.key_value_heads != 0)
    fail(ErrorKind::kConfig, "{}: {} attention heads and {} key/value heads{} do not fit together",
         where, model.heads, model.key_value_heads,
         config.json.contains("num_key_value_heads") ? "" : ", the class's own number,");
  const double widest = double(model.heads * model.head_size + model.mlp);
  const double count = double(model.layers) * 4 * double(model.hidden) * widest +
                       2 * double(model.vocabulary) * double(model.hidden);
  if (count > kMostParameters)
    fail(ErrorKind::kConfig, "{}: the sizes give {:.2g} parameters; at most {:.0e} can be planned",
         where, count, kMostParameters);
}

ModelFile read_config(const std::string& path) {
  const Json json = parse_python_json(read_text(path, kMaxModelFileBytes), path);
  const std::string where = "read " + path;
  to_object(json, where);
  const RelatedFamily& kin = kin_of(json, where);
  ModelFile file{.path = path, .family = std::string(kin.name)};
  file.shape = read_shape({json, where}, kin);
  if (!file.shape->has_language_head) file.architecture = class_of({json, where});
  check_shape(*file.shape, {json, where});
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
  if (file.parameters == 0) fail(ErrorKind::kCorrupt, "read {}: it has no tensors", path);
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
         "read {}: the folder has no config.json, model.safetensors or "
         "model.safetensors.index.json",
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

#include "lib/tools/planner/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "lib/arch/architecture.h"
#include "lib/arch/config_json/config_json.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/find_row.h"
#include "lib/base/json/json.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/read_number.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/safetensors/safetensors.h"
#include "lib/config/model_source.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxModelFileBytes = 16u << 20;

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
std::string class_of(const Json& config, const std::string& where) {
  const auto found = config.find("architectures");
  if (found == config.end() || found->is_null() || (found->is_array() && found->empty())) return "";
  const Json& first = found->is_array() ? found->front() : *found;
  return to_text(first, where + ": architectures");
}

// "Llama" of "LlamaForCausalLM".
std::string_view stem_of(std::string_view name) {
  return name.substr(0, std::min(name.find("ForCausalLM"), name.find("LMHeadModel")));
}

const HeadOfClass& head_of(const std::string& name, const std::string& where) {
  for (const HeadOfClass& head : kHeadsOfClasses) {
    const auto is_class = [&](const Family& family) {
      return name == fmt::format("{}{}", stem_of(family.architecture), head.name);
    };
    if (name.empty() || std::ranges::any_of(families(), is_class)) return head;
  }
  fail(ErrorKind::kConfig,
       "{}: architectures is {}, whose head is unknown; known: {}; use --params with the number of "
       "parameters, or the weights' .safetensors",
       where, name, joined(row_names(kHeadsOfClasses), ", "));
}

// num_labels, or as many as id2label names, or 2.
uint64_t label_count(const Json& config, const std::string& where) {
  const Json names = config.value("id2label", Json());
  const Json labels = config.value("num_labels", Json());
  if (!labels.is_null()) return to_unsigned(labels, where + ": num_labels");
  return names.is_object() && !names.empty() ? names.size() : 2;
}

// Keys that change what is computed and no tensor's size, and those that are of no known class.
Json without_other_keys(Json config, const std::string& family) {
  constexpr std::string_view kOfNoSize[] = {
      "architectures",       "rope_parameters",   "rope_scaling",
      "quantization_config", "sliding_window",    "layer_types",
      "use_sliding_window",  "max_window_layers", "use_bidirectional_attention"};
  Json kept = Json::object();
  for (const auto& [key, value] : config.items()) {
    const bool is_ignored = key.ends_with("_bias") && use_of_key(family, key) == KeyUse::kOneValue;
    const bool is_other = std::ranges::find(kOfNoSize, key) != std::end(kOfNoSize);
    const bool is_known = use_of_key(family, key) != KeyUse::kUnknown;
    if (is_known && !is_other && !is_ignored) kept[key] = value;
  }
  return kept;
}

ModelConfig read_sizes(const Json& config, const std::string& where) {
  const Json type = config.value("model_type", Json());
  const auto names = family_names();
  const bool is_known = std::ranges::find(names, type) != names.end();
  const ModelReading read =
      read_checked_model(is_known ? without_other_keys(config, type.get<std::string>()) : config);
  if (!read.obstacle.empty())
    fail(ErrorKind::kConfig,
         "{}: {}; use --params with the number of parameters, or the weights' .safetensors", where,
         read.obstacle);
  return read.model;
}

std::vector<std::vector<TensorShape>> units_of(const Architecture& architecture,
                                               bool has_language_head) {
  std::vector<std::vector<TensorShape>> units;
  const Decoder& decoder = architecture.decoder;
  for (const UnitSpec& unit : architecture.units) {
    units.emplace_back();
    for (size_t i = 0; i < unit.tensors.size(); ++i) {
      const TensorSpec& tensor = unit.tensors[i];
      const bool is_head = unit.kind == UnitKind::kHead &&
                           (int(i) == decoder.head_weight || int(i) == decoder.head_bias);
      if (is_head && !has_language_head) continue;
      TensorShape shape(tensor.shape.begin(), tensor.shape.end());
      if (unit.kind == UnitKind::kBlock && architecture.inputs_first) std::ranges::reverse(shape);
      units.back().push_back(std::move(shape));
    }
  }
  return units;
}

PublishedModel read_shape(const Json& config, const std::string& where) {
  const ModelConfig model = read_sizes(config, where);
  const HeadOfClass& head = head_of(class_of(config, where), where);
  const DecoderKind& kind = find_family(model.family).kind;
  return {.kind = kind.gated ? BlockKind::kLlama : BlockKind::kGpt,
          .layers = uint64_t(model.layers),
          .hidden = uint64_t(model.hidden),
          .heads = uint64_t(model.heads),
          .key_value_heads = uint64_t(model.kv_head_count()),
          .head_size = uint64_t(model.channels_per_head()),
          .mlp = uint64_t(model.mlp_width()),
          .vocabulary = uint64_t(model.vocab_size),
          .positions = uint64_t(model.context),
          .tied_head = model.ties_head(),
          .qkv_bias = model.has_attention_bias(),
          .output_bias = model.has_attention_bias() && kind.output_bias,
          .mlp_bias = model.has_mlp_bias(),
          .has_language_head = head.is_language_model,
          .labels = head.has_labels ? label_count(config, where) : head.labels,
          .label_bias = head.has_bias,
          .units = units_of(make_architecture(model), head.is_language_model),
          .position_table = kind.position_table};
}

ModelFile read_config(const std::string& path) {
  const Json json = parse_python_json(read_text(path, kMaxModelFileBytes), path);
  const std::string where = "read " + path;
  to_object(json, where);
  ModelFile file{.path = path};
  file.shape = read_shape(json, where);
  file.family = json["model_type"].get<std::string>();
  if (!file.shape->has_language_head) file.architecture = class_of(json, where);
  file.parameters = parameter_count(*file.shape);
  for (const char* key : {"dtype", "torch_dtype"}) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_string()) file.dtype = found->get<std::string>();
  }
  return file;
}

// A mask, positions, frequencies or the scales of 8-bit weights, which are no parameters.
bool is_buffer(const TensorInfo& tensor) {
  const std::string_view name = tensor.name;
  const bool is_mask = tensor.shape.size() == 4 && tensor.shape[0] == 1 && tensor.shape[1] == 1 &&
                       (name.ends_with(".attn.bias") || name.ends_with(".attention.bias"));
  constexpr std::array<std::string_view, 6> kEnds = {"masked_bias",       ".inv_freq",
                                                     "position_ids",      ".weight_scale",
                                                     ".weight_scale_inv", ".input_scale"};
  return is_mask || std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); });
}

// Why the elements of a tensor are not the parameters that its model has; "": they are.
std::string_view counting_obstacle(const TensorInfo& tensor) {
  constexpr std::array kPacked = {StorageDType::kU64, StorageDType::kI64, StorageDType::kU32,
                                  StorageDType::kI32, StorageDType::kU16, StorageDType::kI16,
                                  StorageDType::kU8,  StorageDType::kI8,  StorageDType::kBool};
  if (tensor.name.find(".lora_") != std::string::npos) return "an adapter, not the whole model";
  if (std::ranges::find(kPacked, tensor.dtype) != kPacked.end())
    return "quantized weights, whose number it does not tell";
  return "";
}

// "model-00001-of-00002.safetensors".
bool is_one_of_several(std::string_view name) {
  constexpr std::string_view kMiddle = "-of-", kDigits = "0123456789";
  const size_t at = name.rfind(kMiddle);
  if (at == std::string_view::npos || at == 0 || !name.ends_with(".safetensors")) return false;
  const std::string_view behind = name.substr(at + kMiddle.size());
  const auto files = read_number<int>(behind.substr(0, behind.find_first_not_of(kDigits)));
  return kDigits.find(name[at - 1]) != std::string_view::npos && files && *files > 1;
}

// The model's parameters, by all of its tensors.
uint64_t count_stored(const NamedTensors& stored, const std::string& path) {
  if (is_one_of_several(fs::path(path).filename().string()))
    fail(ErrorKind::kUsage,
         "read {}: it is one of several files of a model; give their folder, or the index", path);
  uint64_t parameters = 0;
  for (const NamedTensor& tensor : stored.tensors) {
    if (is_buffer(tensor.info)) continue;
    if (const auto why = counting_obstacle(tensor.info); !why.empty())
      fail(ErrorKind::kConfig,
           "read {}: tensor {}, of type {}, is of {}; give the model's config.json, or --params "
           "with the number of parameters",
           path, tensor.info.name, to_string(tensor.info.dtype), why);
    parameters += tensor.info.count();
  }
  if (parameters == 0) fail(ErrorKind::kCorrupt, "read {}: it has no tensors", path);
  return parameters;
}

// The bytes of the weights and the type of most elements.
ModelFile describe_stored(const NamedTensors& stored, const std::string& path) {
  ModelFile file{.path = path};
  uint64_t bytes = 0;
  std::map<StorageDType, uint64_t> elements;
  for (const NamedTensor& tensor : stored.tensors) {
    bytes += tensor.info.bytes();
    elements[tensor.info.dtype] += tensor.info.count();
  }
  if (elements.empty()) fail(ErrorKind::kCorrupt, "read {}: it has no tensors", path);
  file.stored_bytes = bytes;
  const auto most =
      std::ranges::max_element(elements, {}, [](const auto& row) { return row.second; });
  file.dtype = std::string(to_string(most->first));
  return file;
}

ModelFile read_stored(const std::string& path) {
  const NamedTensors stored = read_safetensors(path);
  ModelFile file = describe_stored(stored, path);
  file.parameters = count_stored(stored, path);
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
  const ModelFile stored = describe_stored(read_safetensors(path), path);
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

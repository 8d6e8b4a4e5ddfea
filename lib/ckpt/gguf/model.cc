#include "lib/ckpt/gguf/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/tensor_views.h"

namespace gxp {
namespace {

enum class GgufForm { kPlain, kTransposed, kQueryRows, kKeyRows };

// Without ".weight" or ".bias"; # is the layer's number.
struct GgufName {
  std::string_view ours, theirs;
  GgufForm form = GgufForm::kPlain;
};

struct GgufSize {
  std::string_view theirs;
  int ModelConfig::*member;
  bool optional = false;
};

struct GgufFamily {
  std::string_view name;  // model.family, and general.architecture
  std::span<const GgufName> names;
  std::span<const GgufSize> sizes;
  std::string_view norm_eps;
};

constexpr GgufName kLlamaNames[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.layers.#.input_layernorm", "blk.#.attn_norm"},
    {"model.layers.#.self_attn.q_proj", "blk.#.attn_q", GgufForm::kQueryRows},
    {"model.layers.#.self_attn.k_proj", "blk.#.attn_k", GgufForm::kKeyRows},
    {"model.layers.#.self_attn.v_proj", "blk.#.attn_v"},
    {"model.layers.#.self_attn.o_proj", "blk.#.attn_output"},
    {"model.layers.#.post_attention_layernorm", "blk.#.ffn_norm"},
    {"model.layers.#.mlp.gate_proj", "blk.#.ffn_gate"},
    {"model.layers.#.mlp.up_proj", "blk.#.ffn_up"},
    {"model.layers.#.mlp.down_proj", "blk.#.ffn_down"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"}};

constexpr GgufName kGpt2Names[] = {
    {"transformer.wte", "token_embd"},
    {"transformer.wpe", "position_embd"},
    {"transformer.h.#.ln_1", "blk.#.attn_norm"},
    {"transformer.h.#.attn.c_attn", "blk.#.attn_qkv", GgufForm::kTransposed},
    {"transformer.h.#.attn.c_proj", "blk.#.attn_output", GgufForm::kTransposed},
    {"transformer.h.#.ln_2", "blk.#.ffn_norm"},
    {"transformer.h.#.mlp.c_fc", "blk.#.ffn_up", GgufForm::kTransposed},
    {"transformer.h.#.mlp.c_proj", "blk.#.ffn_down", GgufForm::kTransposed},
    {"transformer.ln_f", "output_norm"},
    {"lm_head", "output"}};

constexpr GgufSize kLlamaSizes[] = {{"block_count", &ModelConfig::layers},
                                    {"context_length", &ModelConfig::context},
                                    {"embedding_length", &ModelConfig::hidden},
                                    {"feed_forward_length", &ModelConfig::mlp_hidden},
                                    {"attention.head_count", &ModelConfig::heads},
                                    {"attention.head_count_kv", &ModelConfig::kv_heads, true},
                                    {"attention.key_length", &ModelConfig::head_size, true},
                                    {"attention.value_length", &ModelConfig::head_size, true},
                                    {"rope.dimension_count", &ModelConfig::head_size, true},
                                    {"vocab_size", &ModelConfig::vocab_size, true}};

constexpr GgufSize kGpt2Sizes[] = {{"block_count", &ModelConfig::layers},
                                   {"context_length", &ModelConfig::context},
                                   {"embedding_length", &ModelConfig::hidden},
                                   {"feed_forward_length", &ModelConfig::mlp_hidden},
                                   {"attention.head_count", &ModelConfig::heads},
                                   {"vocab_size", &ModelConfig::vocab_size, true}};

constexpr GgufFamily kGgufFamilies[] = {
    {"llama", kLlamaNames, kLlamaSizes, "attention.layer_norm_rms_epsilon"},
    {"gpt2", kGpt2Names, kGpt2Sizes, "attention.layer_norm_epsilon"}};

constexpr std::string_view kRopeBase = "rope.freq_base";
constexpr const char* kWidenedFrom = "gxp.widened_from";
constexpr std::string_view kTokenTable = "token_embd.weight";
constexpr std::string_view kGgufHead = "output.weight";

const GgufFamily* gguf_family(std::string_view name) {
  const auto* const found = std::ranges::find(kGgufFamilies, name, &GgufFamily::name);
  return found == std::end(kGgufFamilies) ? nullptr : found;
}

struct GgufTensorName {
  std::string name;
  GgufForm form;
};

// Of a tensor of the family's architecture.
GgufTensorName place_of(const std::string& ours, const GgufFamily& family) {
  constexpr const char* kDigits = "0123456789";
  const size_t dot = ours.rfind('.');
  std::string pattern = ours.substr(0, dot);
  std::string number;
  if (const size_t begin = pattern.find_first_of(kDigits); begin < pattern.rfind('.')) {
    number = pattern.substr(begin, pattern.find_first_not_of(kDigits, begin) - begin);
    pattern.replace(begin, number.size(), "#");
  }
  const auto row = std::ranges::find(family.names, pattern, &GgufName::ours);
  GXP_ASSERT(row != family.names.end());
  std::string name(row->theirs);
  if (const size_t hash = name.find('#'); hash != std::string::npos) name.replace(hash, 1, number);
  return {name + ours.substr(dot), row->form};
}

bool is_always_f32(const TensorInfo& theirs) {
  return theirs.shape.size() <= 1 || theirs.name == "position_embd.weight";
}

bool is_narrow(StorageDType dtype) {
  return dtype == StorageDType::kBF16 || dtype == StorageDType::kF16;
}

enum class GgufDirection { kToGguf, kFromGguf };

NamedTensor in_form(NamedTensor tensor, GgufForm form, const ModelConfig& model,
                    GgufDirection direction) {
  if (form == GgufForm::kTransposed && tensor.info.shape.size() == 2)
    return transposed(std::move(tensor));
  if (form == GgufForm::kQueryRows || form == GgufForm::kKeyRows)
    return with_rotary_rows(
        std::move(tensor), uint64_t(model.channels_per_head()),
        direction == GgufDirection::kToGguf ? RotaryRows::kPairs : RotaryRows::kHalves);
  return tensor;
}

// As decimals say it: 0.00001f is 1e-05, not 9.999999747378752e-06.
double decimal_value(float number) {
  return std::strtod(fmt::format("{}", number).c_str(), nullptr);
}

std::string text_of(const GgufHeader& header, const std::string& key) {
  const auto found = header.keys.find(key);
  const auto* const text =
      found == header.keys.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

// The keys of a family, taken one by one; what is left in the end is not known.
class GgufSettings {
 public:
  GgufSettings(const GgufHeader& header, std::string_view family) {
    const std::string prefix = fmt::format("{}.", family);
    for (auto key = header.keys.lower_bound(prefix);
         key != header.keys.end() && key->first.starts_with(prefix); ++key)
      left_.emplace(key->first.substr(prefix.size()), &key->second);
  }

  // Nothing if there is no such key. A value of another kind stays, and so is not known.
  std::optional<int> take_size(std::string_view key) {
    const auto found = left_.find(key);
    if (found == left_.end()) return std::nullopt;
    int64_t size = 0;
    if (const auto* value = std::get_if<uint64_t>(found->second))
      size = int64_t(std::min<uint64_t>(*value, INT64_MAX));
    if (const auto* value = std::get_if<int64_t>(found->second)) size = *value;
    if (size < 1 || size > INT32_MAX) return std::nullopt;
    left_.erase(found);
    return int(size);
  }

  std::optional<double> take_number(std::string_view key) {
    const auto found = left_.find(key);
    if (found == left_.end()) return std::nullopt;
    std::optional<double> number;
    if (const auto* value = std::get_if<float>(found->second)) number = decimal_value(*value);
    if (const auto* value = std::get_if<double>(found->second)) number = *value;
    if (number) left_.erase(found);
    return number;
  }

  [[nodiscard]] std::string first_left() const { return left_.empty() ? "" : left_.begin()->first; }

 private:
  std::map<std::string, const GgufValue*, std::less<>> left_;
};

// A size that several keys give must be the same in all.
Support take_sizes(GgufSettings& settings, const GgufFamily& family, ModelConfig& model) {
  for (const GgufSize& size : family.sizes) {
    const auto value = settings.take_size(size.theirs);
    int& member = model.*size.member;
    if (!value && !size.optional)
      return {false, fmt::format("{}.{} must be a positive number", family.name, size.theirs)};
    if (value && member != 0 && member != *value)
      return {false, fmt::format("{}.{} is {}, not {}", family.name, size.theirs, *value, member)};
    if (value) member = *value;
  }
  return {};
}

Support take_numbers(GgufSettings& settings, const GgufFamily& family, ModelConfig& model) {
  const auto eps = settings.take_number(family.norm_eps);
  if (!eps || !(*eps > 0))
    return {false, fmt::format("{}.{} must be a positive number", family.name, family.norm_eps)};
  model.norm_eps = *eps;
  if (find_family(family.name).has("rope_theta")) {
    model.rope_theta = settings.take_number(kRopeBase).value_or(ModelConfig().rope_theta);
    if (!(model.rope_theta > 0))
      return {false, fmt::format("{}.{} must be positive", family.name, kRopeBase)};
  }
  const std::string left = settings.first_left();
  if (!left.empty()) return {false, fmt::format("{}.{} is not supported", family.name, left)};
  return {};
}

// Whether an architecture can be made of the sizes.
Support sizes_agree(const ModelConfig& model, const GgufFamily& family, size_t tensors) {
  if (size_t(model.layers) > tensors)
    return {false, fmt::format("{} tensors cannot make {} layers", tensors, model.layers)};
  if (model.head_size == 0 && model.hidden % model.heads != 0)
    return {false, fmt::format("head_count {} does not divide embedding_length {}", model.heads,
                               model.hidden)};
  if (model.heads % model.kv_head_count() != 0)
    return {false, fmt::format("head_count_kv {} does not divide head_count {}", model.kv_heads,
                               model.heads)};
  const bool turns = find_family(family.name).has("rope_theta");
  if (turns && model.channels_per_head() % 2 != 0)
    return {false, fmt::format("the head size, {}, is odd", model.channels_per_head())};
  return {};
}

using GgufByName = std::map<std::string, const NamedTensor*, std::less<>>;

Support take_settings(const GgufHeader& header, const GgufByName& tensors, const GgufFamily& family,
                      ModelConfig& model) {
  model.family = family.name;
  for (const GgufSize& size : family.sizes) model.*size.member = 0;
  GgufSettings settings(header, family.name);
  const auto table = tensors.find(kTokenTable);
  if (table == tensors.end() || table->second->info.shape.size() != 2 ||
      table->second->info.shape[0] > INT32_MAX)
    return {false, fmt::format("{} is not a token embedding", kTokenTable)};
  model.vocab_size = int(table->second->info.shape[0]);
  const auto head = tensors.find(kGgufHead);
  // Older converters write the tied head of a GPT-2.
  model.tied_head =
      head == tensors.end() || (family.name == "gpt2" && are_equal(*head->second, *table->second));
  if (Support taken = take_sizes(settings, family, model); !taken) return taken;
  if (Support taken = take_numbers(settings, family, model); !taken) return taken;
  if (Support sizes = sizes_agree(model, family, tensors.size()); !sizes) return sizes;
  if (!find_family(family.name).has("head_size")) return {};
  model.kv_heads = model.kv_head_count();
  model.head_size = model.channels_per_head();
  return {};
}

// The tensor under gxp's name and in its layout.
NamedTensor from_gguf(const NamedTensor& stored, const GgufTensorName& place,
                      const std::string& ours, const ModelConfig& model,
                      std::optional<StorageDType> widened_from) {
  NamedTensor tensor = stored;
  const bool was_narrow = widened_from && is_narrow(*widened_from) && is_always_f32(stored.info) &&
                          stored.info.dtype == StorageDType::kF32;
  if (was_narrow) tensor = narrowed(std::move(tensor), *widened_from);
  tensor = in_form(std::move(tensor), place.form, model, GgufDirection::kFromGguf);
  tensor.info.name = ours;
  return tensor;
}

// The sizes of a tensor of the architecture as the file has them.
std::vector<uint64_t> stored_shape(const TensorSpec& spec, GgufForm form) {
  std::vector<uint64_t> shape(spec.shape.begin(), spec.shape.end());
  if (form == GgufForm::kTransposed && shape.size() == 2) std::ranges::reverse(shape);
  return shape;
}

uint32_t file_type(StorageDType dtype) {
  if (dtype == StorageDType::kF16) return 1;
  return dtype == StorageDType::kBF16 ? 32 : 0;
}

// The type of all that llama.cpp wants in F32, if it is one narrow type.
std::optional<StorageDType> narrow_type(const std::vector<NamedTensor>& weights,
                                        const GgufFamily& family) {
  std::optional<StorageDType> type;
  for (const NamedTensor& tensor : weights) {
    TensorInfo theirs = tensor.info;
    theirs.name = place_of(tensor.info.name, family).name;
    if (!is_always_f32(theirs)) continue;
    if (!is_narrow(theirs.dtype) || theirs.dtype != type.value_or(theirs.dtype))
      return std::nullopt;
    type = theirs.dtype;
  }
  return type;
}

float to_f32(double value, std::string_view key) {
  if (decimal_value(float(value)) != value)
    fail(ErrorKind::kConfig, "write a GGUF file: {} is {}, which F32 cannot represent", key, value);
  return float(value);
}

}  // namespace

bool gguf_has_family(std::string_view family) { return gguf_family(family) != nullptr; }

std::string gguf_families_in_words() {
  std::vector<std::string_view> names;
  for (const GgufFamily& family : kGgufFamilies) names.push_back(family.name);
  return joined(names, " or ");
}

Support take_gguf_model(const GgufHeader& header, std::vector<NamedTensor>& tensors,
                        ModelConfig& model) {
  const std::string architecture = text_of(header, "general.architecture");
  const GgufFamily* family = gguf_family(architecture);
  if (family == nullptr)
    return {false, fmt::format("general.architecture is '{}', not {}", architecture,
                               gguf_families_in_words())};
  GgufByName left;
  for (const NamedTensor& tensor : tensors) left.emplace(tensor.info.name, &tensor);
  ModelConfig read;
  if (Support taken = take_settings(header, left, *family, read); !taken) return taken;
  const auto widened_from = parse_storage_dtype(text_of(header, kWidenedFrom));
  std::vector<NamedTensor> taken;
  for (const UnitSpec& unit : make_architecture(read).units) {
    for (const TensorSpec& spec : unit.tensors) {
      const GgufTensorName place = place_of(spec.name, *family);
      const auto found = left.find(place.name);
      if (found == left.end()) return {false, fmt::format("{} is missing", place.name)};
      if (found->second->info.shape != stored_shape(spec, place.form))
        return {false, fmt::format("{} has the shape ({})", place.name,
                                   joined(found->second->info.shape, ", "))};
      taken.push_back(from_gguf(*found->second, place, spec.name, read, widened_from));
      left.erase(found);
    }
  }
  if (read.ties_head()) left.erase(std::string(kGgufHead));  // the table
  if (!left.empty())
    return {false, fmt::format("{} does not belong to such a model", left.begin()->first)};
  tensors = std::move(taken);
  model = read;
  return {};
}

std::vector<NamedTensor> to_gguf(const std::vector<NamedTensor>& weights,
                                 const ModelConfig& model) {
  const GgufFamily& family = *gguf_family(model.family);
  std::vector<NamedTensor> result;
  for (const NamedTensor& weight : weights) {
    const GgufTensorName place = place_of(weight.info.name, family);
    NamedTensor tensor = in_form(weight, place.form, model, GgufDirection::kToGguf);
    tensor.info.name = place.name;
    const bool widens = is_always_f32(tensor.info) && is_narrow(tensor.info.dtype);
    result.push_back(widens ? widened(std::move(tensor)) : std::move(tensor));
  }
  return result;
}

std::vector<GgufKey> gguf_keys(const std::vector<NamedTensor>& weights, const ModelConfig& model) {
  const GgufFamily& family = *gguf_family(model.family);
  ModelConfig full = model;  // nothing left to a default
  full.mlp_hidden = int(model.mlp_width());
  if (const Support sizes = sizes_agree(full, family, SIZE_MAX); !sizes)
    fail(ErrorKind::kConfig, "write a GGUF file: {}", sizes.reason);
  full.kv_heads = model.kv_head_count();
  full.head_size = model.channels_per_head();
  std::vector<GgufKey> keys = {{"general.architecture", model.family},
                               {"general.file_type", file_type(weights.front().info.dtype)}};
  const auto add = [&](std::string_view key, const auto& value) {
    keys.emplace_back(fmt::format("{}.{}", family.name, key), value);
  };
  for (const GgufSize& size : family.sizes) add(size.theirs, uint32_t(full.*size.member));
  add(family.norm_eps, to_f32(model.norm_eps, "model.norm_eps"));
  if (find_family(family.name).has("rope_theta"))
    add(kRopeBase, to_f32(model.rope_theta, "model.rope_theta"));
  if (const auto narrow = narrow_type(weights, family))
    keys.emplace_back(kWidenedFrom, std::string(to_string(*narrow)));
  return keys;
}

}  // namespace gxp

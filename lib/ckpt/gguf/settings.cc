#include "lib/ckpt/gguf/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/arch/family.h"
#include "lib/arch/layer_set.h"
#include "lib/arch/rope_scaling.h"
#include "lib/ckpt/gguf/key_reader.h"
#include "lib/ckpt/gguf/key_tables.h"
#include "lib/ckpt/gguf/own_settings.h"
#include "lib/ckpt/huggingface/config_json.h"

namespace gxp {
namespace {

constexpr std::string_view kWindow = "attention.sliding_window";
constexpr std::string_view kRopeSize = "rope.dimension_count";
constexpr std::string_view kParallel = "use_parallel_residual";
// Windows of llama.cpp's Gemma 2 and 3: all layers but each second and each sixth; SmolLM3's layers
// without positions: each fourth.
constexpr int kGemma2Period = 2, kGemma3Period = 6, kSmolLm3Period = 4;
constexpr int kGemma2Window = 4096;                    // if no key tells it
constexpr int kGemma2Layers = 46, kGemma3Layers = 62;  // of 27B, whose scale is another one

// The layers of which each `period`th is, or is not, in the set.
std::string each_nth(int layers, int period, bool is_in) {
  std::vector<bool> set;
  for (int i = 0; i < layers; ++i) set.push_back(((i + 1) % period == 0) == is_in);
  return layers_in_words(set);
}

// By which YaRN multiplies the cosines and sines if nothing else is told.
double usual_yarn_factor(double factor) { return factor > 1 ? 0.1 * std::log(factor) + 1 : 1; }

// A size that several keys give must be the same in all.
Support take_sizes(GgufKeyReader& keys, const Family& family, ModelConfig& model) {
  for (const GgufSize& size : kGgufSizes) {
    if (!size.setting.empty() && !family.has(size.setting)) continue;
    const auto value = keys.take_size(size.theirs);
    int& member = model.*size.member;
    if (!value && !size.is_optional)
      return {false, fmt::format("{}{} must be a positive number", keys.prefix(), size.theirs)};
    if (value && member != 0 && member != *value)
      return {false, fmt::format("{}{} is {}, not {}", keys.prefix(), size.theirs, *value, member)};
    if (value) member = *value;
  }
  return {};
}

// Whether an architecture can be made of the sizes.
Support sizes_agree(const ModelConfig& model, const GgufFamily& row, uint64_t tensors) {
  if (uint64_t(model.layers) > tensors)
    return {false, fmt::format("{} tensors cannot make {} layers", tensors, model.layers)};
  if (model.head_size == 0 && model.hidden % model.heads != 0)
    return {false, fmt::format("head_count {} does not divide embedding_length {}", model.heads,
                               model.hidden)};
  if (model.heads % model.kv_head_count() != 0)
    return {false, fmt::format("head_count_kv {} does not divide head_count {}", model.kv_heads,
                               model.heads)};
  if (row.fills_hidden && int64_t{model.heads} * model.channels_per_head() != model.hidden)
    return {false,
            fmt::format("{} heads of {} channels are not embedding_length {}, as {} has them",
                        model.heads, model.channels_per_head(), model.hidden, row.architecture)};
  return {};
}

Support take_numbers(GgufKeyReader& keys, const GgufFamily& row, ModelConfig& model) {
  const auto take = [&](std::string_view key, double absent) {
    const double number = keys.take_number(key).value_or(absent);
    return number > 0 && std::isfinite(number) ? number : 0;
  };
  model.norm_eps = take(row.norm_eps, 0);
  if (model.norm_eps == 0)
    return {false, fmt::format("{}{} must be a positive number", keys.prefix(), row.norm_eps)};
  for (const GgufNumber& number : kGgufNumbers) {
    if (number.family != row.family) continue;
    model.*number.member = take(number.theirs, number.absent);
    if (model.*number.member == 0 && number.absent != 0)
      return {false, fmt::format("{}{} must be a positive number", keys.prefix(), number.theirs)};
  }
  return {};
}

// What llama.cpp fixes, or reads from keys of a single family.
void take_fixed(GgufKeyReader& keys, const GgufFamily& row, ModelConfig& model) {
  const auto scale_of_27b = [&](int layers) {
    const int channels =
        model.layers == layers ? model.hidden / model.heads : model.channels_per_head();
    model.attention_scale = 1 / std::sqrt(double(channels));
  };
  const auto take_window = [&](int absent, const std::string& layers) {
    model.window = keys.take_size(kWindow, 0).value_or(absent);
    model.window_layers = model.window > 0 ? layers : "all";
  };
  if (row.family == "gpt_neox") model.parallel_residual = keys.take<bool>(kParallel).value_or(true);
  if (row.family == "smollm3")
    model.unrotated_layers = each_nth(model.layers, kSmolLm3Period, true);
  if (row.family == "phi3") take_window(0, "all");
  if (row.family == "gemma2") {
    scale_of_27b(kGemma2Layers);
    take_window(kGemma2Window, each_nth(model.layers, kGemma2Period, false));
  }
  if (row.family == "gemma3_text") {
    scale_of_27b(kGemma3Layers);
    take_window(0, each_nth(model.layers, kGemma3Period, false));
  }
}

Support take_rope_share(GgufKeyReader& keys, const Family& family, ModelConfig& model) {
  const auto size = keys.take_size(kRopeSize);
  if (size && family.has("rope_partial"))
    model.rope_partial = double(*size) / model.channels_per_head();
  if (size && *size != turning_channels(model))
    return {false, fmt::format("{}{} is {}, of heads of {} channels", keys.prefix(), kRopeSize,
                               *size, model.channels_per_head())};
  const int channels = turning_channels(model);
  if (channels < 1 || channels % 2 != 0 || channels > model.channels_per_head())
    return {false,
            fmt::format("positions turn {} of {} channels", channels, model.channels_per_head())};
  return {};
}

Support take_rope(GgufKeyReader& keys, const Family& family, ModelConfig& model) {
  model.rope_theta = keys.take_number("rope.freq_base").value_or(ModelConfig().rope_theta);
  if (!(model.rope_theta > 0) || !std::isfinite(model.rope_theta))
    return {false, fmt::format("{}rope.freq_base must be positive", keys.prefix())};
  if (Support share = take_rope_share(keys, family, model); !share) return share;
  const auto factor = keys.take_number("rope.scaling.factor");
  const auto type = keys.take<std::string>("rope.scaling.type");
  const auto original = keys.take_size("rope.scaling.original_context_length");
  const auto attention = keys.take_number("rope.scaling.attn_factor");
  // llama.cpp's Granite has no positions where this is false; other families do not heed it.
  if (keys.take<bool>("rope.scaling.finetuned") == false && family.name == "granite")
    return {false, fmt::format("{}rope.scaling.finetuned is false", keys.prefix())};
  const std::string kind = type.value_or(factor ? "linear" : "none");
  if (kind == "none") return {};
  const bool is_yarn = kind == "yarn" && !family.kind.local_rotary;
  if (kind != "linear" && !is_yarn)
    return {false, fmt::format("{}rope.scaling.type is {}", keys.prefix(), kind)};
  if (!factor || !(*factor > 0) || !std::isfinite(*factor))
    return {false, fmt::format("{}rope.scaling.factor must be positive", keys.prefix())};
  model.rope_factor = *factor;
  model.rope_scaling = is_yarn ? RopeScaling::kYarn : RopeScaling::kLinear;
  if (!is_yarn) return {};
  model.rope_original_context = original.value_or(model.context);
  for (const auto& [key, member] :
       {std::pair{"rope.scaling.yarn_beta_fast", &ModelConfig::rope_beta_fast},
        std::pair{"rope.scaling.yarn_beta_slow", &ModelConfig::rope_beta_slow}}) {
    const double beta = keys.take_number(key).value_or(model.*member);
    if (!(beta > 0) || !std::isfinite(beta))
      return {false, fmt::format("{}{} must be positive", keys.prefix(), key)};
    model.*member = beta;
  }
  const double times = attention.value_or(1);
  if (!(times > 0) || !std::isfinite(times))
    return {false, fmt::format("{}rope.scaling.attn_factor must be positive", keys.prefix())};
  if (times != 1) model.rope_attention_factor = times * usual_yarn_factor(*factor);
  return {};
}

// ---- writing

float to_f32(double value, std::string_view key) {
  if (decimal_value(float(value)) != value)
    fail(ErrorKind::kConfig, "write a GGUF file: {} is {}, which F32 cannot represent", key, value);
  return float(value);
}

class KeyWriter {
 public:
  explicit KeyWriter(std::string_view architecture) : architecture_(architecture) {
    keys_.emplace_back(kArchitectureKey, std::string(architecture));
  }
  template <class Value>
  void add(std::string_view key, const Value& value) {
    keys_.emplace_back(fmt::format("{}.{}", architecture_, key), value);
  }
  void add_number(std::string_view key, double value) {
    add(key, to_f32(value, fmt::format("{}.{}", architecture_, key)));
  }
  void add_own(std::vector<GgufKey> keys) {
    for (GgufKey& key : keys) keys_.push_back(std::move(key));
  }
  [[nodiscard]] std::vector<GgufKey> take() { return std::move(keys_); }

 private:
  std::string architecture_;
  std::vector<GgufKey> keys_;
};

void add_rope(const ModelConfig& model, const GgufFamily& row, KeyWriter& keys) {
  if (row.tells_rope_size) keys.add(kRopeSize, uint32_t(turning_channels(model)));
  keys.add_number("rope.freq_base", model.rope_theta);
  const bool is_yarn = model.rope_scaling == RopeScaling::kYarn;
  if (is_yarn || model.rope_scaling == RopeScaling::kLinear) {
    keys.add("rope.scaling.type", std::string(model.rope_scaling.word()));
    keys.add_number("rope.scaling.factor", model.rope_factor);
  }
  if (row.family == "phi3" && !is_yarn)
    keys.add("rope.scaling.original_context_length", uint32_t(model.context));
  if (!is_yarn) return;
  keys.add("rope.scaling.original_context_length", uint32_t(model.rope_original_context));
  keys.add_number("rope.scaling.yarn_beta_fast", model.rope_beta_fast);
  keys.add_number("rope.scaling.yarn_beta_slow", model.rope_beta_slow);
  const double usual = usual_yarn_factor(model.rope_factor);
  if (model.rope_attention_factor != usual)
    keys.add("rope.scaling.attn_factor", float(model.rope_attention_factor / usual));
}

void add_window(const ModelConfig& model, const GgufFamily& row, KeyWriter& keys) {
  const bool is_told = row.family == "phi3" || row.family == "gemma2" ||
                       (row.family == "gemma3_text" && model.window > 0);
  if (is_told) keys.add(kWindow, uint32_t(model.window));
}

// llama.cpp's own, of a model with nothing left to a default.
void add_model(const ModelConfig& full, const GgufFamily& row, KeyWriter& keys) {
  const Family& family = find_family(row.family);
  for (const GgufSize& size : kGgufSizes)
    if (size.setting.empty() || family.has(size.setting))
      keys.add(size.theirs, uint32_t(full.*size.member));
  keys.add_number(row.norm_eps, full.norm_eps);
  if (family.has("rope_theta")) add_rope(full, row, keys);
  add_window(full, row, keys);
  if (row.family == "gpt_neox") keys.add(kParallel, full.parallel_residual);
  for (const GgufNumber& number : kGgufNumbers) {
    const double value = full.*number.member;
    const bool is_usual_scale = number.member == &ModelConfig::attention_scale &&
                                value == 1 / std::sqrt(double(full.head_size));
    // llama.cpp has no key for the absence of what it has always.
    if (number.family == row.family && value > 0 && !is_usual_scale &&
        (number.is_written || value != number.absent))
      keys.add_number(number.theirs, value);
  }
}

}  // namespace

const GgufFamily* told_gguf_family(const GgufHeader& header) {
  const auto* const told = find_gguf_value<std::string>(header, kArchitectureKey);
  const std::string architecture = told == nullptr ? "" : *told, family = own_family(header);
  const GgufFamily* usual = nullptr;
  for (const GgufFamily& row : gguf_families()) {
    if (row.architecture != architecture) continue;
    if (row.family == family) return &row;
    if (usual == nullptr) usual = &row;
  }
  return usual;
}

std::vector<float> rope_freqs_of(const ModelConfig& model) {
  ModelConfig plain = model;
  plain.rope_scaling = RopeScaling::kNone;
  const std::vector<double> scaled = make_rotary(model).frequencies;
  std::vector<float> divisors;
  for (const double frequency : make_rotary(plain).frequencies)
    divisors.push_back(float(frequency / scaled[divisors.size()]));
  return divisors;
}

Support read_gguf_settings(const GgufHeader& header, const GgufFamily& row,
                           const GgufTensorFacts& facts, ModelConfig& model) {
  const Family& family = find_family(row.family);
  model = ModelConfig{.family = std::string(row.family)};
  for (const GgufSize& size : kGgufSizes) model.*size.member = 0;
  if (facts.vocabulary == 0 || facts.vocabulary > INT32_MAX)
    return {false, "token_embd.weight is not a token embedding"};
  model.vocab_size = int(facts.vocabulary);
  GgufKeyReader keys(header, row.architecture);
  if (Support taken = take_sizes(keys, family, model); !taken) return taken;
  if (Support sizes = sizes_agree(model, row, facts.tensors); !sizes) return sizes;
  if (family.has("kv_heads")) model.kv_heads = model.kv_head_count();
  if (family.has("head_size")) model.head_size = model.channels_per_head();
  if (Support taken = take_numbers(keys, row, model); !taken) return taken;
  take_fixed(keys, row, model);
  if (family.has("rope_theta"))
    if (Support taken = take_rope(keys, family, model); !taken) return taken;
  if (const std::string left = keys.first_left(); !left.empty())
    return {false, fmt::format("{}{} is not supported", keys.prefix(), left)};
  model.tied_head =
      row.head == GgufHead::kTied || (row.head == GgufHead::kEither && facts.ties_head);
  if (row.any_biases) {
    model.attention_bias = facts.has_attention_bias;
    model.mlp_bias = facts.has_mlp_bias;
  }
  return take_own_settings(header, row, facts.rope_freqs, model);
}

std::vector<GgufKey> gguf_keys(const ModelConfig& model) {
  const GgufFamily& row = *find_gguf_family(model.family);
  if (const Support sizes = sizes_agree(model, row, UINT64_MAX); !sizes)
    fail(ErrorKind::kConfig, "write a GGUF file: {}", sizes.reason);
  KeyWriter keys(row.architecture);
  const ModelConfig full = model.resolved();
  add_model(full, row, keys);
  keys.add_own(own_gguf_keys(full, row));
  return keys.take();
}

std::string gguf_cannot_say(const ModelConfig& model, const ModelConfig& said) {
  const KeyValues ours = settings_of(model.resolved());
  const KeyValues theirs = settings_of(said.resolved());
  for (const auto& [key, text] : ours) {
    const auto other = find_value(theirs, key);
    if (other != text)
      return fmt::format("{} is {}; in GGUF, a {} has {}", key, text,
                         find_gguf_family(model.family)->architecture, other.value_or("none"));
  }
  return "";
}

}  // namespace gxp

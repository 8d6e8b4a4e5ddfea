// The user's settings of a model: the section [model] of a run file (lib/config/run_config.h). A
// setting that not all families have is declared without their names: the families' rows
// (family.h) say who has it, and the manual, the rules and the messages read it there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/choice.h"
#include "lib/base/decoder/activation.h"
#include "lib/base/schema.h"

namespace gxp {

// The values of model.family, in the order of the table (family.h).
std::vector<std::string_view> family_names();

// How the angles of rotary positions are changed for contexts longer than those of pre-training.
// Source: transformers 5.24, modeling_rope_utils.py; YaRN: arXiv:2309.00071.
enum class RopeScaling { kNone, kLinear, kLlama3, kYarn };
constexpr std::array<std::string_view, 4> words_of(RopeScaling) {
  return {"none", "linear", "llama3", "yarn"};
}

inline constexpr int kMostLayers = 1 << 16;

struct ModelConfig {
  std::string family = "gpt2";
  int vocab_size = 256;
  int context = 256;  // positions the model has
  int hidden = 256;
  int layers = 4;
  int heads = 4;
  int kv_heads = 0;    // 0: heads
  int head_size = 0;   // 0: hidden / heads
  int mlp_hidden = 0;  // 0: by the family
  double norm_eps = 1e-5;
  // Without a value: the family's (family.h), which the function of this name gives.
  std::optional<Choice<Activation>> activation = {};
  std::optional<bool> tied_head = {};
  std::optional<bool> attention_bias = {};
  std::optional<bool> mlp_bias = {};
  bool query_key_norm = false;
  bool parallel_residual = false;
  double rope_theta = 10000;
  double rope_local_theta = 10000;
  double rope_partial = 1;
  Choice<RopeScaling> rope_scaling = RopeScaling::kNone;
  double rope_factor = 1;
  int rope_original_context = 0;  // 0: context
  double rope_low_freq_factor = 1, rope_high_freq_factor = 4;
  double rope_beta_fast = 32, rope_beta_slow = 1;
  bool rope_truncate = true;
  double rope_attention_factor = 0;  // 0: by the scaling
  std::string unrotated_layers = {};
  int window = 0;  // 0: none
  std::string window_layers = "all";
  double attention_scale = 0;  // 0: 1 / sqrt(head size)
  bool attention_scale_by_layer = false;
  double score_cap = 0, logit_cap = 0;  // 0: none
  double embedding_scale = 1, residual_scale = 1, logit_divisor = 1;
  int pad_token = -1;       // -1: none
  std::string config = {};  // "": none
  std::string init = "normal";

  // The sizes, with the default in place of a 0 above.
  [[nodiscard]] int kv_head_count() const { return kv_heads > 0 ? kv_heads : heads; }
  [[nodiscard]] int channels_per_head() const { return head_size > 0 ? head_size : hidden / heads; }
  // These: kConfig if the family is unknown.
  [[nodiscard]] int64_t mlp_width() const;
  [[nodiscard]] Choice<Activation> activation_used() const;
  [[nodiscard]] bool ties_head() const;
  [[nodiscard]] bool has_attention_bias() const;
  [[nodiscard]] bool has_mlp_bias() const;
  // The same model, with nothing left to a default that another setting decides; equal for equal
  // functions.
  [[nodiscard]] ModelConfig resolved() const;
  bool operator==(const ModelConfig&) const = default;

  // The upper limits keep every product of sizes within 64 bits.
  using S = ModelConfig;
  static void schema(auto& field) {
    field.section("model", "The model's shape and its initial weights.");
    field("family", &S::family, "Model family.", one_of(family_names()));
    field("vocab_size", &S::vocab_size,
          "Size of the vocabulary: token ids are 0 to vocab_size - 1.", between(1, 1 << 24));
    field("context", &S::context, "Longest sequence that the model takes, in tokens.",
          between(1, 1 << 24));
    field("hidden", &S::hidden,
          "Width of the residual stream. Must be a multiple of heads unless head_size is set.",
          between(1, 1 << 20));
    field("layers", &S::layers, "Number of transformer blocks.", between(1, kMostLayers));
    field("heads", &S::heads,
          "Number of attention (query) heads. Must divide hidden unless head_size is set.",
          between(1, 1 << 20));
    field("kv_heads", &S::kv_heads,
          "Key/value heads (grouped-query attention); must divide heads. 0: same as heads.",
          between(0, 1 << 20));
    field("head_size", &S::head_size,
          "Width of an attention head, an even number. 0: hidden / heads.", between(0, 1 << 16));
    field(
        "mlp_hidden", &S::mlp_hidden,
        "Width of the MLP's hidden layer. 0: 4 times hidden; of gated MLPs 8/3 of hidden, rounded "
        "up to a multiple of 256.",
        between(0, 1 << 22));
    field("norm_eps", &S::norm_eps,
          "Added to the variance (RMSNorm: the mean square) before the square root.", positive);
    field("activation", &S::activation, &S::activation_used,
          "Activation function of the MLP. gelu_tanh: GELU in its tanh form.");
    field("tied_head", &S::tied_head, &S::ties_head,
          "Share one weight between the token embedding and the output head.");
    field(
        "attention_bias", &S::attention_bias, &S::has_attention_bias,
        "Biases of the projections to queries, keys and values, and of the one behind attention.");
    field("mlp_bias", &S::mlp_bias, &S::has_mlp_bias, "Biases of the MLP's matrices.");
    field("query_key_norm", &S::query_key_norm, "LayerNorm of each head's queries and keys.");
    field("parallel_residual", &S::parallel_residual,
          "Attention and MLP both read the block's input, and their outputs are added to it.");
    field("rope_theta", &S::rope_theta, "Base of the rotary position embedding (RoPE).", positive);
    field("rope_local_theta", &S::rope_local_theta,
          "Base of RoPE in the layers with a window, which rope_scaling leaves alone.", positive);
    field("rope_partial", &S::rope_partial,
          "Fraction of a head's channels that RoPE turns: the first ones, an even number.",
          Check{.low = 0, .high = 1, .low_is_open = true});
    field(
        "rope_scaling", &S::rope_scaling,
        "Change of RoPE's frequencies for contexts longer than the one of pre-training, as in "
        "Hugging Face's config.json. linear: frequencies divided by rope_factor. llama3: only low "
        "frequencies. yarn: by a ramp over the frequencies (arXiv:2309.00071).");
    field("rope_factor", &S::rope_factor, "rope_scaling: factor of the context's length.",
          positive);
    field("rope_original_context", &S::rope_original_context,
          "rope_scaling llama3 and yarn: context of pre-training. 0: model.context.",
          between(0, 1 << 24));
    field("rope_low_freq_factor", &S::rope_low_freq_factor,
          "rope_scaling llama3: turns within the original context below which a frequency is "
          "divided by rope_factor.",
          positive);
    field("rope_high_freq_factor", &S::rope_high_freq_factor,
          "rope_scaling llama3: turns within the original context above which a frequency is kept.",
          positive);
    field("rope_beta_fast", &S::rope_beta_fast,
          "rope_scaling yarn: turns within the original context above which a frequency is kept.",
          positive);
    field("rope_beta_slow", &S::rope_beta_slow,
          "rope_scaling yarn: turns within the original context below which a frequency is divided "
          "by rope_factor.",
          positive);
    field("rope_truncate", &S::rope_truncate,
          "rope_scaling yarn: round the ends of the ramp to whole channels.");
    field("rope_attention_factor", &S::rope_attention_factor,
          "rope_scaling yarn: factor of RoPE's cosines and sines. 0: 0.1 ln(rope_factor) + 1.",
          at_least(0));
    field("unrotated_layers", &S::unrotated_layers,
          "Layers without rotary positions, such as \"3,7,11\" or \"0-2,5\", from 0; \"\": none.");
    field(
        "window", &S::window,
        "Sliding window of attention: a position sees so many positions, its own and those before "
        "it. 0: all before it.",
        between(0, 1 << 24));
    field("window_layers", &S::window_layers,
          "Layers with the window, such as \"0,2,4\" or \"0-2,5\", from 0. all: every layer.");
    field("attention_scale", &S::attention_scale,
          "Factor of attention's scores. 0: 1 / sqrt(head size).", at_least(0));
    field("attention_scale_by_layer", &S::attention_scale_by_layer,
          "Divide attention's scores by the number of the layer, from 1, too.");
    field("score_cap", &S::score_cap,
          "Soft cap of attention's scores: cap * tanh(score / cap). 0: none.", at_least(0));
    field("logit_cap", &S::logit_cap, "Soft cap of the logits: cap * tanh(logit / cap). 0: none.",
          at_least(0));
    field("embedding_scale", &S::embedding_scale, "Factor of the token embedding.", positive);
    field("residual_scale", &S::residual_scale,
          "Factor of attention's and the MLP's outputs before they are added to the stream.",
          positive);
    field("logit_divisor", &S::logit_divisor, "Divisor of the logits.", positive);
    field("pad_token", &S::pad_token,
          "Token whose row of the embedding gets no gradient from being looked up, as in "
          "torch.nn.Embedding's padding_idx. -1: none.",
          between(-1, 1 << 24));
    field("config", &S::config,
          "A Hugging Face config.json, or a directory with one, from which the other settings of "
          "[model] are taken, without weights. Those that the run gives as well must agree with "
          "it; context may be another one if the family has rotary positions. \"\": none.");
    field("init", &S::init,
          "Initial weights. normal: random, from train.seed. Anything else is a path: a Hugging "
          "Face directory, a .safetensors file with Hugging Face's names, or another checkpoint "
          "that gxp convert-ckpt reads. A config.json in the directory or next to the file gives "
          "the other settings of [model], as model.config does. The run is refused if gxp does not "
          "implement the checkpoint's model, or if any of its tensors would be left unread.");
  }
};

}  // namespace gxp

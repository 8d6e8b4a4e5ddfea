// The user's settings of a model: the section [model] of a run file (lib/config/run_config.h). A
// setting that not all families have is declared without their names: the families' rows
// (family.h) say who has it, and the manual, the rules and the messages read it there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/schema.h"

namespace gxp {

// The values of model.family, in the order of the table (family.h).
std::vector<std::string_view> family_names();

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
  double rope_theta = 10000;
  bool tied_head = false;
  double norm_eps = 1e-5;
  std::string init = "normal";

  // The sizes, with the default in place of a 0 above.
  [[nodiscard]] int kv_head_count() const { return kv_heads > 0 ? kv_heads : heads; }
  [[nodiscard]] int channels_per_head() const { return head_size > 0 ? head_size : hidden / heads; }
  [[nodiscard]] int64_t mlp_width() const;  // kConfig if the family is unknown

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
    field("layers", &S::layers, "Number of transformer blocks.", between(1, 1 << 16));
    field("heads", &S::heads,
          "Number of attention (query) heads. Must divide hidden unless head_size is set.",
          between(1, 1 << 20));
    field("kv_heads", &S::kv_heads,
          "Key/value heads (grouped-query attention); must divide heads. 0: same as heads.",
          between(0, 1 << 20));
    field("head_size", &S::head_size,
          "Width of an attention head, an even number. 0: hidden / heads.", between(0, 1 << 16));
    field("mlp_hidden", &S::mlp_hidden,
          "Width of the MLP's hidden layer. 0: 8/3 of hidden, rounded up to a multiple of 256.",
          between(0, 1 << 22));
    field("rope_theta", &S::rope_theta, "Base of the rotary position embedding (RoPE).", positive);
    field("tied_head", &S::tied_head,
          "Share one weight between the token embedding and the output head. Families without "
          "this setting always share it.");
    field("norm_eps", &S::norm_eps,
          "Added to the variance (RMSNorm: the mean square) before the square root.", positive);
    field("init", &S::init,
          "Initial weights. normal: random, from train.seed. Anything else is a path: a Hugging "
          "Face directory, a .safetensors file with Hugging Face's names, or another checkpoint "
          "that gxp convert-ckpt reads. The run is refused if gxp does not implement the "
          "checkpoint's model, if its config.json (in the directory or next to the file) "
          "contradicts [model], or if any of its tensors would be left unread.");
  }
};

}  // namespace gxp

#include "lib/arch/model_config.h"

#include <cmath>

#include "lib/arch/family.h"
#include "lib/arch/layer_set.h"
#include "lib/arch/rope_scaling.h"

namespace gxp {

int64_t ModelConfig::mlp_width() const {
  if (mlp_hidden > 0) return mlp_hidden;
  if (!find_family(family).kind.gated) return int64_t{4} * hidden;
  return (int64_t{8} * hidden + 3 * 256 - 1) / (3 * 256) * 256;
}

Choice<Activation> ModelConfig::activation_used() const {
  return activation.value_or(find_family(family).defaults.activation);
}
bool ModelConfig::ties_head() const {
  return tied_head.value_or(find_family(family).defaults.tied_head);
}
bool ModelConfig::has_attention_bias() const {
  return attention_bias.value_or(find_family(family).defaults.attention_bias);
}
bool ModelConfig::has_mlp_bias() const {
  return mlp_bias.value_or(find_family(family).defaults.mlp_bias);
}

ModelConfig ModelConfig::resolved() const {
  ModelConfig full = *this;
  full.kv_heads = kv_head_count();
  full.head_size = channels_per_head();
  full.mlp_hidden = int(mlp_width());
  full.activation = activation_used();
  full.tied_head = ties_head();
  full.attention_bias = has_attention_bias();
  full.mlp_bias = has_mlp_bias();
  if (attention_scale == 0) full.attention_scale = 1 / std::sqrt(double(full.head_size));
  if (rope_scaling == RopeScaling::kLlama3 || rope_scaling == RopeScaling::kYarn)
    if (rope_original_context == 0) full.rope_original_context = context;
  if (rope_scaling == RopeScaling::kYarn) full.rope_attention_factor = make_rotary(full).factor;
  if (window == 0) full.window_layers = "all";
  for (std::string* text : {&full.window_layers, &full.unrotated_layers})
    if (const auto in_set = parse_layers(*text, layers)) *text = layers_in_words(*in_set);
  return full;
}

}  // namespace gxp

#include "lib/ckpt/huggingface/config_spelling.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"

namespace gxp {
namespace {

struct HeadRow {
  std::string_view model_type;
  std::string_view name;  // of the head's tensor
  bool tied_if_absent;    // the model's default of tie_word_embeddings
};

constexpr std::array kHeads = {
    HeadRow{"gpt2", "lm_head.weight", true},       HeadRow{"llama", "lm_head.weight", false},
    HeadRow{"mistral", "lm_head.weight", false},   HeadRow{"qwen2", "lm_head.weight", false},
    HeadRow{"qwen3", "lm_head.weight", false},     HeadRow{"gemma", "lm_head.weight", true},
    HeadRow{"gpt_neox", "embed_out.weight", false}};

Json value_of(const Json& config, const char* key) { return config.value(key, Json()); }

const HeadRow* head_of(const Json& config) {
  const auto found = std::ranges::find_if(
      kHeads, [&](const HeadRow& row) { return value_of(config, "model_type") == row.model_type; });
  return found == kHeads.end() ? nullptr : &*found;
}

// What transformers 4 calls the base of the angles and the share of the channels that turn.
struct OldRopeKeys {
  const char* theta = "rope_theta";
  const char* share = "partial_rotary_factor";
};

OldRopeKeys old_rope_keys(const Json& config) {
  if (value_of(config, "model_type") == "gpt_neox") return {"rotary_emb_base", "rotary_pct"};
  return {};
}

void add_if_absent(Json& object, const char* key, const Json& value) {
  if (!value.is_null() && value_of(object, key).is_null()) object[key] = value;
}

// From one object for all layers; objects for each kind of layers are transformers 5's only.
void add_old_rope(Json& config, const OldRopeKeys& old) {
  const Json rope = config["rope_parameters"];
  if (!value_of(rope, "rope_theta").is_number()) return;
  add_if_absent(config, old.theta, rope["rope_theta"]);
  add_if_absent(config, old.share, value_of(rope, "partial_rotary_factor"));
  if (value_of(rope, "rope_type").is_null() || rope["rope_type"] == "default") return;
  Json scaling = rope;
  scaling.erase("rope_theta");
  scaling.erase("partial_rotary_factor");
  add_if_absent(config, "rope_scaling", scaling);
}

void add_new_rope(Json& config, const OldRopeKeys& old) {
  if (!value_of(config, old.theta).is_number()) return;
  Json rope = value_of(config, "rope_scaling");
  if (!rope.is_object()) rope = Json::object();
  if (rope.contains("type")) add_if_absent(rope, "rope_type", rope["type"]);
  add_if_absent(rope, "rope_type", "default");
  rope["rope_theta"] = config[old.theta];
  add_if_absent(rope, "partial_rotary_factor", value_of(config, old.share));
  config["rope_parameters"] = rope;
}

}  // namespace

Json rope_settings(const Json& config) {
  Json rope = value_of(config, "rope_scaling");
  if (!rope.is_object() || rope.empty()) rope = value_of(config, "rope_parameters");
  if (!rope.is_object()) rope = Json::object();
  const OldRopeKeys old = old_rope_keys(config);
  add_if_absent(rope, "rope_type", value_of(rope, "type"));
  add_if_absent(rope, "rope_type", "default");
  add_if_absent(rope, "rope_theta", value_of(config, old.theta));
  add_if_absent(rope, "partial_rotary_factor", value_of(config, old.share));
  return rope;
}

void add_both_spellings(Json& config) {
  const OldRopeKeys old = old_rope_keys(config);
  if (value_of(config, "rope_parameters").is_object()) {
    add_old_rope(config, old);
  } else {
    add_new_rope(config, old);
  }
  add_if_absent(config, "dtype", value_of(config, "torch_dtype"));
  add_if_absent(config, "torch_dtype", value_of(config, "dtype"));
  if (const HeadRow* head = head_of(config))
    add_if_absent(config, "tie_word_embeddings", head->tied_if_absent);
}

bool is_language_model(const Json& config) {
  const Json classes = value_of(config, "architectures");
  if (!classes.is_array() || classes.empty()) return true;
  return std::ranges::any_of(classes, [](const Json& name) {
    if (!name.is_string()) return false;
    const auto& text = name.get_ref<const std::string&>();
    return text.ends_with("ForCausalLM") || text.ends_with("LMHeadModel");
  });
}

void check_head(const Json& config, const NamedTensors& tensors, const std::string& path) {
  const HeadRow* head = head_of(config);
  if (head == nullptr || !is_language_model(config)) return;
  const Json tied = value_of(config, "tie_word_embeddings");
  if (tied.is_null() ? head->tied_if_absent : tied != false) return;
  if (find_tensor(tensors, head->name) || find_tensor(tensors, "lm_head.weight")) return;
  fail(
      ErrorKind::kCorrupt,
      "read {}: the head is not tied (tie_word_embeddings is {}), but no tensor '{}' is stored; if "
      "the model's head is its token table, set tie_word_embeddings to true",
      path, tied.is_null() ? "absent, which means false" : tied.dump(), head->name);
}

}  // namespace gxp

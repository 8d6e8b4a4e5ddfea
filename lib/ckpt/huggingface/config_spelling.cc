#include "lib/ckpt/huggingface/config_spelling.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/ckpt/huggingface/model_tensors.h"

namespace gxp {
namespace {

Json value_of(const Json& config, const char* key) { return config.value(key, Json()); }

const Family* family_of(const Json& config) {
  const Json type = value_of(config, "model_type");
  const auto found =
      std::ranges::find_if(families(), [&](const Family& family) { return type == family.name; });
  return found == families().end() ? nullptr : &*found;
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

void add_both_spellings(Json& config) {
  const OldRopeKeys old = old_rope_keys(config);
  if (value_of(config, "rope_parameters").is_object()) {
    add_old_rope(config, old);
  } else {
    add_new_rope(config, old);
  }
  add_if_absent(config, "dtype", value_of(config, "torch_dtype"));
  add_if_absent(config, "torch_dtype", value_of(config, "dtype"));
  if (const Family* family = family_of(config))
    add_if_absent(config, "tie_word_embeddings", family->defaults.tied_head);
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
  const Family* family = family_of(config);
  if (family == nullptr || !is_language_model(config)) return;
  const Json tied = value_of(config, "tie_word_embeddings");
  if (tied.is_null() ? family->defaults.tied_head : tied != false) return;
  const std::string head = fmt::format("{}.weight", family->names.head);
  // With more before it, its name is unknown, which others say.
  const auto is_head = [&](const NamedTensor& tensor) {
    const std::string_view name = tensor.info.name;
    return name == head || name == kHeadName || name.ends_with("." + head);
  };
  if (std::ranges::any_of(tensors.tensors, is_head)) return;
  fail(
      ErrorKind::kCorrupt,
      "read {}: the head is not tied (tie_word_embeddings is {}), but no tensor '{}' is stored; if "
      "the model's head is its token table, set tie_word_embeddings to true",
      path, tied.is_null() ? "absent, which means false" : tied.dump(), head);
}

}  // namespace gxp

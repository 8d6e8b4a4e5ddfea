// The model families: rows of one decoder (decoder.h). Settings, rules, messages, checkpoints, plans
// and tests read the table. How a family's config.json says what [model] says: config_json.h. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/arch/decoder.h"
#include "lib/base/schema.h"

namespace gxp {

// What [model] means in a family where it says nothing.
struct FamilyDefaults {
  Activation activation = Activation::kSilu;
  bool tied_head = false;
  bool attention_bias = false;  // where the family has no such setting: what it is
  bool mlp_bias = false;        // likewise
};

struct Family {
  std::string_view name;               // model.family, and config.json's model_type
  std::string_view architecture;       // Hugging Face's class: "LlamaForCausalLM"
  std::string_view prefix = "model.";  // of all tensors but the head
  DecoderKind kind = {};
  DecoderNames names = {};
  FamilyDefaults defaults = {};
  // The settings of [model] that it has and not all families have.
  std::vector<std::string_view> keys = {};

  [[nodiscard]] bool has(std::string_view key) const;
};

const std::vector<Family>& families();
// Of the settings of any family.
const std::vector<SettingRule<ModelConfig>>& model_rules();

// kConfig, with all names, if the name is unknown.
const Family& find_family(std::string_view name);
// "gpt2, llama or qwen2".
std::string families_in_words();
// The families that have a setting of [model] that not all have; none if all have it.
std::vector<std::string_view> families_with(std::string_view key);

}  // namespace gxp

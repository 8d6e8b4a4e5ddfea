// The model families: what gxp knows of each but its arithmetic, which is lib/model's. A family is
// a header here (gpt2.h, llama.h), which describes it on one page, and a row in families.cc;
// settings, rules, messages, checkpoints, plans and tests read the table. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/arch/published_models.h"
#include "lib/base/schema.h"

namespace gxp {

// How the family's config.json says what [model] says, and what its tensors are called.
struct HuggingFaceFamily {
  // An integer of [model].
  struct Size {
    const char* theirs;
    const char* ours;
    int ModelConfig::*member;
    bool optional = false;  // absent or null: 0, which means a default
  };
  // A property that gxp fixes and no setting changes: config.json must have this value, or no such
  // key.
  struct Fact {
    enum class Use { kBoth, kRead, kWritten };
    const char* key;
    std::variant<bool, double, std::string_view> value;
    Use use = Use::kBoth;
    std::vector<std::string_view> also = {};  // other words for it
  };
  // Another model_type with the same computation, unless its config.json sets a sliding window.
  struct RelatedType {
    std::string_view model_type;
    std::string_view architecture;
    int window_if_absent;  // sliding_window
  };
  std::string_view architecture;  // "LlamaForCausalLM"
  std::string_view prefix;        // of all tensors but the head: "model."
  std::vector<Size> sizes;
  std::string_view mlp_width = {};  // config.json's key, if gxp derives the width from other sizes
  const char* norm_eps;
  double norm_eps_if_absent;
  std::vector<Fact> facts;  // in the order in which they are written
  std::vector<RelatedType> kin = {};
};

struct Family {
  std::string_view name;  // model.family, and config.json's model_type
  BlockKind block;        // the kind of block that plans of its published models assume
  Architecture (*make)(const ModelConfig&, DType compute, KeptOutputs kept);
  // The channels between the projections of the MLP.
  int64_t (*mlp_width)(const ModelConfig&);
  // The settings of [model] that it has and not all families have.
  std::vector<std::string_view> keys = {};
  std::vector<SettingRule<ModelConfig>> rules = {};
  HuggingFaceFamily huggingface;

  [[nodiscard]] bool has(std::string_view key) const;
};

const std::vector<Family>& families();

// kConfig, with all names, if the name is unknown.
const Family& find_family(std::string_view name);
// "gpt2 or llama".
std::string families_in_words();
// The families that have a setting of [model] that not all have; none if all have it.
std::vector<std::string_view> families_with(std::string_view key);

}  // namespace gxp

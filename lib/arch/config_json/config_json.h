// A Hugging Face config.json as the settings [model], and back, for the families of family.h. Every
// key that changes the computation is read, or is the reason why gxp does not compute the model;
// both spellings, of transformers 4 and 5, are read and written. Pure.
// Source: transformers 5.24, models/*/{configuration,modeling}_*.py, modeling_rope_utils.py.
#pragma once

#include <string>
#include <string_view>

#include "lib/arch/model_config.h"
#include "lib/base/json/json.h"

namespace gxp {

struct ModelReading {
  // All sizes, the activation, and the biases and the head where the family has a choice are given.
  // Its values may still break a setting's own check or the rules of [model].
  ModelConfig model = {};
  // Why gxp does not compute the model: "hidden_act is quick_gelu; ..."; "" if it does.
  std::string obstacle = {};
};

// `config` is an object. A key that is absent has the default of the family's class.
ModelReading read_model(const Json& config);

// `original`, an object, with all keys that say what `model` says; {} for none. One of another
// family, or of a model that gxp does not compute, is dropped. kConfig: the family's config.json has
// no words for a setting.
Json write_model(const ModelConfig& model, Json original);

// The rates of dropout with which its makers trained the model, and gxp does not: "resid_pdrop
// 0.1"; "" if there are none.
std::string describe_dropout(const Json& config);

// What gxp makes of a key of a family's config.json.
enum class KeyUse {
  kComputed,       // settings depend on it
  kWithoutEffect,  // of generation, training or the file
  kOneValue,       // gxp computes a single value of it, or null
  kUnknown,        // refused unless null
};
KeyUse use_of_key(std::string_view family, std::string_view key);

// The default of a computed key in the family's class; null for kv heads and the like that follow
// from others.
Json class_default(std::string_view family, std::string_view key);

}  // namespace gxp

// The keys of config.json: the tables behind config_json.h, whose .cc files alone include this.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/family.h"
#include "lib/base/json/json.h"

namespace gxp {

// A config.json on its way to a ModelConfig.
struct ModelInJson {
  const Family& family;
  const Json& told;   // the file
  Json config;        // the computed keys, with the class's defaults for absent ones
  ModelConfig model;  // what has been read
};

// The value, or null for an absent key.
Json value_of(const Json& object, std::string_view key);
// "gelu" rather than "\"gelu\"".
std::string to_words(const Json& value);
bool is_positive(const Json& value);  // a finite number
bool is_size(const Json& value);      // a whole number from 1 that an int holds

// A key that says a setting by itself. Others: layer_keys.cc, rope_keys.cc.
struct ConfigKey {
  std::string_view name;
  // Puts the value into `in.model`. "" or what follows "KEY is VALUE": ", not a positive number".
  std::string (*read)(const Json& value, ModelInJson& in);
  Json (*write)(const ModelConfig& model);
};
std::span<const ConfigKey> config_keys();  // in the order in which they are read

// The computed keys of the family, with the defaults of its class.
const Json& class_defaults(const Family& family);
// The rates of dropout of its class.
std::vector<std::string_view> dropout_keys(const Family& family);

bool has_no_effect(const Family& family, std::string_view key);
// The value of a key that gxp does not compute at which it changes nothing; nullptr if the key is
// not known.
const Json* only_value(const Family& family, std::string_view key);

// Layers with windows and without positions, and rotary positions. Return "" or the obstacle.
std::string read_layers(ModelInJson& in);
void write_layers(const ModelConfig& model, Json& config);
std::string read_rope(ModelInJson& in);
void write_rope(const ModelConfig& model, Json& config);

// Throws: config.json has no words for the setting.
[[noreturn]] void fail_to_write(const ModelConfig& model, std::string_view setting,
                                const std::string& value);

}  // namespace gxp

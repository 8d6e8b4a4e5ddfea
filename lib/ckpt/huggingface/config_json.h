// A Hugging Face config.json as the settings that come with tensors, and back: its keys are
// lib/arch/config_json's matter. All other keys are kept as written, so that a directory of any
// model_type survives a conversion.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/config/run_config.h"
#include "lib/config/settings.h"

namespace gxp {

// The key of config.json's text in NamedTensors::metadata.
inline constexpr const char* kConfigText = "huggingface.config";

// The model.* settings of a config.json; none if gxp does not compute the model. kCorrupt, naming
// `path`: no JSON object.
KeyValues read_model_config(std::string_view text, const std::string& path);

// Why gxp does not compute the model: "model_type is mamba2; supported: ..."; "" if it does.
// kCorrupt: as above.
std::string describe_obstacle(std::string_view text, const std::string& path);

// The rates of dropout with which its makers trained the model, and gxp does not: "resid_pdrop
// 0.1"; "" if there are none. kCorrupt: as above.
std::string describe_dropout(std::string_view text, const std::string& path);

// The model.* settings that the family has, from which model_of() makes the same model.
KeyValues settings_of(const ModelConfig& model);
// From settings as settings_of() or a run gives them. kConfig: a size is missing, or they make no
// model.
ModelConfig model_of(const KeyValues& settings);
// Puts the values of a section, "model" or "lora", into `run`, but for paths, and the settings into
// `taken`. Returns "" or what is wrong with one.
std::string take_settings(std::string_view section, const KeyValues& told, RunConfig& run,
                          std::vector<const Setting*>* taken = nullptr);
// A size without which there is no model_of(): "model.heads"; "" if all are told.
std::string missing_size(const KeyValues& told);

// config.json for weights of type `dtype`. What `original` says of the same family besides the
// settings stays; "": there is none. kConfig: the family has no words for a setting. kCorrupt:
// `original` is no JSON object.
std::string make_model_config(const ModelConfig& model, const std::string& original,
                              StorageDType dtype);

// `original` for a model that gxp cannot compute: with the type of the weights if one is given, and
// with RoPE's settings, the type and the tying of the head as transformers 4 and 5 spell them.
// kCorrupt: no JSON object.
std::string refresh_model_config(const std::string& original, std::optional<StorageDType> dtype);

}  // namespace gxp

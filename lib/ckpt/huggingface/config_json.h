// A Hugging Face config.json as the settings [model], and back. All other keys are kept as written,
// so that a directory of any model_type survives a conversion.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/ckpt/named_tensors.h"
#include "lib/config/run_config.h"

namespace gxp {

// The key of config.json's text in NamedTensors::metadata.
inline constexpr const char* kConfigText = "huggingface.config";

// The model.* settings of a config.json, whose keys are in the family's row (lib/arch/family.h);
// RoPE's also as transformers 4 writes them. None if gxp does not compute the model. kCorrupt,
// naming `path`: no JSON object.
KeyValues read_model_config(std::string_view text, const std::string& path);

// Why gxp does not compute the model: "model_type is qwen2, none of gpt2, llama"; "" if it does.
// kCorrupt: as above.
std::string describe_obstacle(std::string_view text, const std::string& path);

// The rates of dropout with which its makers trained the model, and gxp does not: "resid_pdrop
// 0.1"; "" if there are none. kCorrupt: as above.
std::string describe_dropout(std::string_view text, const std::string& path);

// From settings as read_model_config or a run gives them. kConfig: one is missing or makes no
// model.
ModelConfig model_of(const KeyValues& settings);

// config.json for weights of type `dtype`. What `original` says of the same family besides the
// settings stays; "": there is none. kCorrupt: `original` is no JSON object.
std::string make_model_config(const ModelConfig& model, const std::string& original,
                              StorageDType dtype);

// `original` for a model that gxp cannot compute: with the type of the weights if one is given, and
// with RoPE's settings, the type and the tying of the head as transformers 4 and 5 spell them.
// kCorrupt: no JSON object.
std::string refresh_model_config(const std::string& original, std::optional<StorageDType> dtype);

}  // namespace gxp

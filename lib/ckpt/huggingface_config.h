// config.json of the models that gxp computes, and the settings of [model] that say the same.
// What a family calls them is in its row (lib/arch/family.h).
// Source: transformers 5.23, models/{gpt2,llama}/configuration_*.py; RoPE's settings also as
// transformers 4 writes them.
#pragma once

#include <string>

#include "lib/ckpt/named_tensors.h"
#include "lib/config/run_config.h"

namespace gxp {

// The model.* settings; none, and a warning that says why, if gxp cannot compute the model. kIo;
// kCorrupt: no JSON object.
KeyValues read_model_config(const std::string& path);

// From settings as read_model_config or a run gives them. kConfig: one is missing or makes no
// model.
ModelConfig model_of(const KeyValues& settings);

// config.json for weights of type `dtype`.
std::string make_model_config(const ModelConfig& model, StorageDType dtype);

}  // namespace gxp

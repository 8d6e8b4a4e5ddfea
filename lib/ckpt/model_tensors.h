// What formats that hold one model, and no tensors beside it, read and write: the model's settings
// and its weights in the order of its architecture (lib/arch/architecture.h).
#pragma once

#include <string>
#include <vector>

#include "lib/arch/model_config.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// model.family as the settings tell it; "" if they do not.
std::string family_told(const KeyValues& settings);

// The model.* settings from which model_of() (config_json.h) makes the same model.
KeyValues settings_of(const ModelConfig& model);

// The weights of `model` under gxp's names, in its order. kCorrupt: one is missing or has another
// shape. Those that the model does not have are left out.
std::vector<NamedTensor> weights_of_model(const NamedTensors& source, const ModelConfig& model);

// Warns of how many of the source's weights are not among the `used` ones that are written.
void report_unused_weights(const NamedTensors& source, size_t used);

}  // namespace gxp

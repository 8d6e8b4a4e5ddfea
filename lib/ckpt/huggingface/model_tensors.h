// What formats that hold one model, and no tensors beside it, read and write: the model's settings
// and its weights in the order of its architecture (lib/arch/architecture.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/model_config.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// model.family from the settings; "" if they have none.
std::string family_told(const KeyValues& settings);

// The model.* settings from which model_of() (config_json.h) makes the same model.
KeyValues settings_of(const ModelConfig& model);

// The weights of `model` under gxp's names, in its order. `act` begins the errors ("write a GGUF
// file"). kCorrupt: one is missing or has another shape. kConfig: the source has others, which
// would be lost: the biases of a Llama, the scales of quantized weights, or a head that is not the
// token table although the model ties the two. A stored head that is the table, and the frequencies
// of rotary positions, which follow from rope_theta, are left out.
std::vector<NamedTensor> weights_of_model(const NamedTensors& source, const ModelConfig& model,
                                          std::string_view act);

inline constexpr std::string_view kHeadName = "lm_head.weight";
// Whether the head of `model` is its token table.
bool ties_head(const ModelConfig& model);

// The names of the source's weights that `model` has no place for, under gxp's names.
std::vector<std::string> weights_without_place(const NamedTensors& source,
                                               const ModelConfig& model);

}  // namespace gxp

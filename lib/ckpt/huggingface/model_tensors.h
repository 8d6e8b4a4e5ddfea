// What formats that hold one model, and no tensors beside it, read and write: the model's settings
// and its weights in the order of its architecture (lib/arch/architecture.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/family.h"
#include "lib/arch/model_config.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// model.family from the settings; "" if they have none.
std::string family_told(const KeyValues& settings);

inline constexpr std::string_view kHeadName = "lm_head.weight";  // most families'
std::string head_name(const Family& family);

// The tensors under the family's names: GPT-2's with their prefix; a head that is called as most
// families call it; the table of a tied model of which only the head is stored.
NamedTensors with_family_names(NamedTensors tensors, const ModelConfig& model);

// "" or that the head is tied, but stored, and differs. Reads both tensors.
std::string tied_head_problem(const NamedTensors& tensors, const ModelConfig& model);

// The first setting that is not among `known` and has another value than nobody's, for formats that
// have no place for it: "model.rope_scaling is \"yarn\""; "" if there is none.
std::string setting_beyond(const ModelConfig& model, std::span<const std::string_view> known);

// The weights of `model` under gxp's names, in its order. `act` begins the errors ("write a GGUF
// file"). kCorrupt: one is missing or has another shape. kConfig: the source has others, which
// would be lost: biases that the settings do not tell, the scales of quantized weights, or a head
// that is not the token table although the model ties the two. A stored head that is the table, and
// buffers of old files, which follow from the settings, are left out.
std::vector<NamedTensor> weights_of_model(const NamedTensors& source, const ModelConfig& model,
                                          std::string_view act);

// The names of the source's weights that `model` has no place for, under gxp's names.
std::vector<std::string> weights_without_place(const NamedTensors& source,
                                               const ModelConfig& model);

}  // namespace gxp

// Whether what a file holds is the model that gxp computes: for model.init, for --resume and for
// `gxp convert-ckpt --inspect`.
#pragma once

#include <string>

#include "lib/arch/model_config.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Why gxp does not compute the model whose weights these are: by its config.json, if it came with
// one, or because a weight has no place in the model of its settings. "" if nothing shows that.
// Reads no tensor. kCorrupt: the config.json is no JSON object.
std::string foreign_model(const NamedTensors& tensors);

// How the weights are quantized, by the config.json that came with them; "" if it does not say so.
std::string quantization_of(const NamedTensors& tensors);

// The reason why these cannot be the weights of `model`, in words; "" if the file shows none. In
// this order:
//   model      foreign_model()
//   settings   all that the file records and that differ, sizes with their defaults filled in;
//              model.context counts only where the model has a table of positions
//   tensors    one is missing or has another shape
//   unread     a weight for which the model has no place; a tied head that is stored must be the
//              token table, and buffers of old files (masks, rotary_emb.inv_freq) are no weights
// Reads no tensor but a tied head and its table. kCorrupt: as above.
std::string model_mismatch(const NamedTensors& tensors, const ModelConfig& model);

// foreign_model(), or what model_mismatch() says of the model that the file itself records; "" also
// where it records none.
std::string model_problem(const NamedTensors& tensors);

// The settings of model.* that the function depends on, no tensor shows and the file does not tell:
// "model.heads, model.norm_eps"; "" if it records all.
std::string unrecorded_settings(const NamedTensors& tensors, const ModelConfig& model);

}  // namespace gxp

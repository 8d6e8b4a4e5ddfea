// Hugging Face model directories: config.json and safetensors. The families of lib/arch/family.h
// are understood as models; others are named tensors only.
// Source: transformers 5.23, models/{gpt2,llama}/{modeling,configuration}_*.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/ckpt/named_tensors.h"
#include "lib/config/run_config.h"

namespace gxp {

bool is_huggingface(const std::string& path);
// Whether write_huggingface() gives files such a name.
bool is_huggingface_file(std::string_view name);

// Tensors under the names in the files. `config` has the model.* settings if config.json is of a
// model that gxp can compute; a warning says why if not.
NamedTensors read_huggingface(const std::string& path);

// The weights as the family's class (HuggingFaceFamily::architecture) saves them, and config.json.
// DIR exists. kConfig: the model's settings are not known, or make no model; kCorrupt: a tensor
// that they ask for is not there.
void write_huggingface(const NamedTensors& tensors, const std::string& directory,
                       uint64_t shard_bytes);

// The same with the names of GPT2LMHeadModel, which are gxp's own: the prefix "transformer." is
// added where GPT2Model's names lack it, the mask buffers of old files (h.N.attn.bias,
// .masked_bias) are dropped, and so is lm_head.weight if it equals transformer.wte.weight; kConfig
// if not: gxp's GPT-2 ties the two. Names of other models are left alone.
NamedTensors with_gpt2_names(NamedTensors tensors);

// The model.* settings of a config.json, whose keys are in the family's row (lib/arch/family.h);
// RoPE's also as transformers 4 writes them. None, and a warning that says why, if gxp cannot
// compute the model. kIo; kCorrupt: no JSON object.
KeyValues read_model_config(const std::string& path);

// From settings as read_model_config or a run gives them. kConfig: one is missing or makes no
// model.
ModelConfig model_of(const KeyValues& settings);

// config.json for weights of type `dtype`.
std::string make_model_config(const ModelConfig& model, StorageDType dtype);

}  // namespace gxp

// Rules that gxp has for the checkpoints of well-known programs: --map torchtitan.
//
//   torchtitan   its Llama 3 and its Qwen3, to Hugging Face's names and rows
//                Source: torchtitan (August 2026), models/{llama3,qwen3}/state_dict_adapter.py; names
//                of 2024 and later
//   meta-llama   Meta's Llama 1 to 3, to Hugging Face's names and rows
//                Source: meta-llama/llama-models, models/llama3/model.py
//   nanogpt      karpathy/nanoGPT's ckpt.pt, to the GPT-2 of Hugging Face: its matrices are
//                torch.nn.Linear's, transposed against those; without biases, it is a GPT-2 whose
//                biases are 0. Its model_args become the model's settings; GELU is the exact one, as
//                in its model.py since June 2023
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// "torchtitan", ...
std::vector<std::string_view> map_names();

// The rules, as TOML, for a model with these settings (model.family, if they have it). kConfig: the
// program's model of this family is not known, or the map needs the family.
std::string rules_of_map(std::string_view name, const KeyValues& settings);

// What the program has recorded of the model, as settings: nanoGPT's model_args. None: nothing.
KeyValues recorded_model(std::string_view name, const NamedTensors& tensors);

}  // namespace gxp

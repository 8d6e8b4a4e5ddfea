// PEFT's directories of LoRA adapters: adapter_config.json and adapter_model.safetensors, or in old
// ones adapter_model.bin.
// Source: peft 0.21, utils/save_and_load.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/format.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

bool is_peft(const std::string& path);
bool is_peft_file(std::string_view name);

// `config` has the settings [lora], the text of adapter_config.json is in `metadata`. kConfig: an
// adapter of a kind that gxp does not compute.
NamedTensors read_peft(const std::string& path);

// kConfig: none of the tensors is an adapter.
void check_fits_peft(const NamedTensors& tensors);
// The adapters among the tensors, and what `config` says of them: of a run with [lora], or of
// another directory.
void write_peft(const NamedTensors& tensors, const std::string& directory,
                const WriteOptions& options);

// Whether some of the weights are adapters.
bool has_adapters(const NamedTensors& tensors);

NamedTensors without_adapters(NamedTensors tensors);

// The weights of `model` that are no adapters, each adapted matrix W as W + factor * B A, computed
// in f32 and rounded once to W's type, when it is read. kConfig: an adapter without a matrix, or of
// another shape, or any other tensor beside the adapters, unless it is the model's, unchanged.
// Keeps all of the adapters in memory.
NamedTensors merge_adapters(NamedTensors model, const NamedTensors& adapters);

}  // namespace gxp

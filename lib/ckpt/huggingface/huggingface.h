// Hugging Face model directories: config.json, safetensors, and files of the tokenizer; read also
// with pytorch_model.bin, or several such files and their index, where there are no safetensors.
// The families of lib/arch/family.h are understood as models; others are named tensors and the text
// of their config.json.
// Source: transformers 5.24, models/*/{modeling,configuration}_*.py.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/ckpt/format.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

bool is_huggingface(const std::string& path);
// What a directory may have besides weights and config.json: the tokenizer, and for generation.
std::span<const std::string_view> companion_names();
// Whether write_huggingface() gives files such a name.
bool is_huggingface_file(std::string_view name);

// Tensors under the names in the files. `config` has the model.* settings if they are of a model
// that gxp computes (foreign_model() in model_check.h says why if not). The text of config.json is
// in `metadata` (kConfigText), the files of the tokenizer and for generation are in `companions`.
// kCorrupt also if the head is neither tied nor stored.
NamedTensors read_huggingface(const std::string& path);
// The CRCs of pytorch_model.bin's files; 0 of safetensors, which record nothing.
uint64_t verify_huggingface(const std::string& path);

// The files of the tokenizer and for generation in a directory, by their paths.
std::vector<std::string> companions_of(const std::string& path);

// What the config.json next to a single file of weights says of them, in `config` and `metadata`;
// nothing where they tell of their model themselves, or where there is no config.json of a model.
void add_neighbouring_config(const std::string& path, NamedTensors& tensors);

// The model.* settings of the Hugging Face directory `path`, or of that config.json. kConfig: gxp
// does not compute the model.
KeyValues model_settings_at(const std::string& path);

// The tensors as a model of the Hugging Face directory `path`, or of that config.json: its settings
// and files of the tokenizer, and names without what wrappers of PyTorch put into them (module.,
// _orig_mod. and the like). kConfig: gxp does not compute the model, these are not its tensors, or
// the source records other heads, norm_eps, rope_theta or rope_scaling.
NamedTensors as_model_of(const std::string& path, NamedTensors tensors);

// The weights as the family's class (Family::architecture) saves them; config.json, with
// all that an earlier one said (make_model_config()); and copies of the companions, and of those
// that a GGUF file holds. The tensors of
// a model that gxp cannot compute, or with tensors unknown to its family, are unchanged. DIR is
// made, or entered. kConfig: neither the model's settings nor a config.json are known, or they make
// no model; kCorrupt: a tensor that they ask for is not there.
void write_huggingface(const NamedTensors& tensors, const std::string& directory,
                       const WriteOptions& options);
// The files that it would write, whatever the path. Errors: the same.
std::vector<PlannedFile> plan_huggingface(const NamedTensors& tensors, const std::string& path,
                                          const WriteOptions& options);

// The same with the names of GPT2LMHeadModel, which are gxp's own: the prefix "transformer." is
// added where GPT2Model's names lack it, the mask buffers of old files (h.N.attn.bias,
// .masked_bias) are dropped, and so is lm_head.weight if it equals transformer.wte.weight and the
// settings do not say that the head is one of its own. Other models' names are left alone, also
// those of a model whose config.json has another model_type.
NamedTensors with_gpt2_names(NamedTensors tensors);
// Only adds the prefix.
NamedTensors with_gpt2_prefix(NamedTensors tensors);
bool is_gpt2_mask(std::string_view name);

}  // namespace gxp

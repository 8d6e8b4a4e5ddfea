// gxp's own keys (settings.h). They add to what llama.cpp's keys say, and never change it: a file
// whose keys another program has changed is not read by old ones. Only the .cc files of this folder
// include it.
#pragma once

#include <string>
#include <vector>

#include "lib/arch/model_config.h"
#include "lib/base/error.h"
#include "lib/ckpt/gguf/families.h"
#include "lib/ckpt/gguf/header.h"

namespace gxp {

// The family that the file names; "": none.
std::string own_family(const GgufHeader& header);

// Adds to `model`, as llama.cpp's keys tell it, what the keys say, and llama3's RoPE by the divisors
// of its frequencies, which are the only place where other programs' files say it. False: a key
// contradicts llama.cpp's, or the divisors are not those of settings that are told or usual.
Support take_own_settings(const GgufHeader& header, const GgufFamily& row,
                          const std::vector<float>& rope_freqs, ModelConfig& model);

// For a model with nothing left to a default.
std::vector<GgufKey> own_gguf_keys(const ModelConfig& full, const GgufFamily& row);

}  // namespace gxp

// The block of one layer of a decoder. Only this folder includes it.
#pragma once

#include <string>

#include "lib/arch/make_decoder.h"

namespace gxp {

// Whether PEFT's rule for target_modules takes the module: its path ends with a target.
bool is_target(const LoraConfig& lora, const std::string& path);

// Says in `decoder` where everything of it is; all layers' are alike.
UnitSpec make_block(const Family& family, const ModelConfig& config, const DecoderOptions& options,
                    int layer, Decoder& decoder);

}  // namespace gxp

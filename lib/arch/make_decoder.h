// A family's decoder with the settings [model], as a table of units. Pure.
#pragma once

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"

namespace gxp {

struct DecoderOptions {
  DType compute;
  KeptOutputs kept;
  const LoraConfig& lora;
};

Architecture make_decoder(const Family& family, const ModelConfig& config,
                          const DecoderOptions& options);

}  // namespace gxp

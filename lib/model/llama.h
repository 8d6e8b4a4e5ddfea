// Llama's forward and backward. See lib/arch/llama.h for its tensors.
#pragma once

#include "lib/model/model.h"

namespace gxp::llama {

std::unique_ptr<Model> make_llama_model(const Architecture& architecture, Ops& ops);

}  // namespace gxp::llama

// GPT-2's forward and backward. See lib/arch/gpt2.h for its tensors.
#pragma once

#include "lib/model/model.h"

namespace gxp::gpt2 {

std::unique_ptr<Model> make_gpt2_model(const Architecture& architecture, Ops& ops);

}  // namespace gxp::gpt2

// First weights from a file: model.init.
#pragma once

#include <string>

#include "lib/zero/held_state.h"

namespace gxp {

// Fills the weights from a checkpoint of any format with Hugging Face names. Numbers in
// another element type are converted. Errors: kIo, kCorrupt; kConfig if a tensor is missing or has
// another shape, naming it.
void load_weights(const std::string& path, HeldState& state);

}  // namespace gxp

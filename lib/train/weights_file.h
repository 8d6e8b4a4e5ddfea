// First weights from a file: model.init.
#pragma once

#include <string>

#include "lib/train/trainer.h"

namespace gxp {

// Fills the trainer's weights from a checkpoint of any format with Hugging Face names. Numbers in
// another element type are converted. Errors: kIo, kCorrupt; kConfig if a tensor is missing or has
// another shape, naming it.
void load_weights(const std::string& path, Trainer& trainer);

}  // namespace gxp

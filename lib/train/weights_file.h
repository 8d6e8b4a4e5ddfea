// First weights from a file: model.init.
#pragma once

#include <string>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/zero/held_state.h"

namespace gxp {

// Fills the weights from a checkpoint of any format with Hugging Face names. Numbers in
// another element type are converted. Errors: kIo, kCorrupt; kConfig if a tensor is missing or has
// another shape, naming it.
void load_weights(const std::string& path, HeldState& state);

// F64, F32, F16 and BF16.
bool becomes_f32(StorageDType dtype);
// Host memory of such elements as F32: `elements` itself, or `converted`.
ConstMemory as_f32(ConstMemory elements, StorageDType dtype, std::vector<float>& converted);

}  // namespace gxp

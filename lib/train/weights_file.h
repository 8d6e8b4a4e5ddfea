// First weights from a file: model.init.
#pragma once

#include <string>

#include "lib/ckpt/named_tensors.h"
#include "lib/tensor/tensor.h"
#include "lib/zero/held_state.h"

namespace gxp {

// Fills the weights from a checkpoint of any format with Hugging Face names. Numbers in
// another element type are converted. Errors: kIo, kCorrupt; kConfig if a tensor is missing or has
// another shape, naming it.
void load_weights(const std::string& path, HeldState& state);

// Fills `to`, f32 in host memory, with the elements from `begin` on, converted from F64, F32, F16
// or BF16. kConfig, naming `path`: another type.
void read_as_f32(const NamedTensor& from, uint64_t begin, const Tensor& to,
                 const std::string& path);

}  // namespace gxp

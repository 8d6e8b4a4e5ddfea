// First weights from files: model.init and lora.init.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/ckpt/named_tensors.h"
#include "lib/zero/held_state.h"

namespace gxp {

// Fills the elements that a rank holds of a tensor, f32.
using FillTensor = std::function<void(const HeldTensor&, const Tensor& weight)>;

// From a checkpoint of any format with Hugging Face names, if it is of this model as gxp computes it
// (model_mismatch() in lib/ckpt/huggingface/model_check.h). Numbers in another element type are
// converted. With `reports`, the log lists the settings of [model] that the file does not record,
// and the dropout with which the model was trained. Errors, some when a tensor is filled: kIo;
// kCorrupt, also of weights that are NaN or infinite; kConfig: it is of another model.
FillTensor weights_from(const std::string& path, const ModelConfig& model, bool reports);
// The adapters of the architecture, from a directory of PEFT's. Errors: the same; kConfig also if it
// has others.
FillTensor adapters_from(const std::string& path, const Architecture& architecture);

// kCorrupt, naming `name` and the first element that is NaN or infinite: such a model has no finite
// loss, and the error of the first step would not show the cause. `first`: the number of the first
// one. Cost: as much as a sum.
void require_finite(ConstMemory f32, std::string_view act, std::string_view name, uint64_t first);

// F64, F32, F16 and BF16.
bool becomes_f32(StorageDType dtype);
// Host memory of such elements as F32: `elements` itself, or `converted`.
ConstMemory as_f32(ConstMemory elements, StorageDType dtype, std::vector<float>& converted);

}  // namespace gxp

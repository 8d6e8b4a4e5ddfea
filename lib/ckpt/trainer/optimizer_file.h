// The state_dict() of an optimizer in a file of its own, beside the weights: transformers'
// optimizer.pt, accelerate's optimizer.bin.
//
// Such a file numbers the parameters, unless it has names (optimizer_state.h). The numbers follow
// the model's parameters(), which files of weights do not tell, as safetensors sort them. The order
// is known of the families that gxp computes (parameter_order.h), once the model's settings are.
#pragma once

#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Adds the optimizer in `path`, or, if its parameters cannot be named before the model is known,
// keeps the path in OptimizerRecord::unnamed. What cannot be matched, or why the file cannot be read
// at all, is in OptimizerRecord::lost: the weights alone may be wanted.
void add_optimizer_file(const std::string& path, NamedTensors& tensors);
// The same for DCP's directory optimizer_0, which has names. Errors: kIo; kCorrupt, naming it: no
// optimizer's state, or state of no weight.
void add_optimizer_directory(const std::string& path, NamedTensors& tensors);

// Adds the file that was left, now that the model is known.
void name_optimizer(NamedTensors& tensors);

}  // namespace gxp

// What gxp knows of a run, as free pairs of texts, for formats that have no other place for it:
// "gxp.step", and the settings of the model and its adapters, "gxp.model.hidden".
#pragma once

#include <map>
#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// tensors.metadata and these pairs.
std::map<std::string, std::string> with_run_metadata(const NamedTensors& tensors);
// Moves these pairs from tensors.metadata to `step` and `config`.
void take_run_metadata(NamedTensors& tensors);

}  // namespace gxp

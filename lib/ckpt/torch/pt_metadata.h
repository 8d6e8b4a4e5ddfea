// gxp's facts about a run, in the _metadata of a state dict: {"gxp": {"step": n,
// "samples_consumed": n, "config": {key: value}, "state": {key: value}}}. torch keeps the versions
// of modules there, under the modules' names, and ignores other names.
#pragma once

#include <optional>
#include <string>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/pickle.h"
#include "lib/ckpt/torch/pickle_writer.h"

namespace gxp {

// Puts the state {"_metadata": ...} of the dict that was put last, and builds it.
void put_pt_metadata(PickleWriter& pickle, const NamedTensors& tensors);

// Reads it, if the dict has it. kCorrupt, naming `where`: it is not as above.
void take_pt_metadata(PickleValue state_dict, const std::string& where, NamedTensors& tensors);

// A bool, number or text of up to 4096 bytes as metadata has it; nothing for other values.
std::optional<std::string> scalar_text(PickleValue value);

}  // namespace gxp

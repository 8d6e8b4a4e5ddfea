// The tensors of a state_dict: a dict of names, possibly of dicts and lists of such, as people nest
// them.
#pragma once

#include <string>
#include <vector>

#include "lib/ckpt/torch/pickle.h"

namespace gxp {

struct StateDictTensor {
  std::string name;   // keys and indices joined by dots: "encoder.0.weight"
  PickleValue value;  // is_tensor()
};

// In the order of the dict. Numbers, texts, None, classes, torch.Size and torch.device are passed
// over; so is a module's "_extra_state" that is no tensor, and the log says so; any other object is
// an error that names what would make it, since it might be a tensor. kCorrupt, naming `where`:
// that, a key of a tensor that is neither text nor integer, an empty name or one with a NUL, a name
// twice, nesting deeper than 64, or more than 2^20 visits: parts that are named again and again.
std::vector<StateDictTensor> tensors_in(PickleValue dict, const std::string& where);

}  // namespace gxp

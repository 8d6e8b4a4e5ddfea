// Why gxp does not compute the model that a config.json describes. Every key that changes a model's
// computation is either supported by gxp with its value, or reported as an obstacle. Source:
// transformers 5.24, models/*/{configuration,modeling}_*.py, modeling_rope_utils.py. Only the .cc
// files of this folder include it.
#pragma once

#include <string>
#include <string_view>

#include "lib/arch/family.h"
#include "lib/ckpt/json.h"

namespace gxp {

// The family of config.json's model_type, its own or a kin's; nullptr if gxp has none.
const Family* family_of(const Json& config);

// The class of `architectures` for this model_type of the family.
std::string_view class_of(const Family& family, std::string_view model_type);

// "model_type is qwen2", "hidden_act is gelu, not silu"; "" if gxp computes the model.
std::string config_obstacle(const Json& config);

}  // namespace gxp

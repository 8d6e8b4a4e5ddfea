// The order in which a model of transformers has its parameters, by which optimizers number them.
// Source: transformers 5.24, models/*/modeling_*.py: the order of the modules in __init__.
#pragma once

#include <string>
#include <vector>

#include "lib/arch/model_config.h"

namespace gxp {

// The names in the order of parameters() of the family's class (Family::architecture), a tied head
// left out, as parameters() leaves it out.
std::vector<std::string> parameter_order(const ModelConfig& model);

}  // namespace gxp

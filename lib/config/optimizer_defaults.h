// Defaults of the section optim that depend on the optimizer's name.
#pragma once

#include <span>
#include <string_view>

namespace gxp {

struct OptimizerDefault {
  std::string_view name;  // optim.name
  std::string_view key;   // in the section optim
  double value;           // of a switch: 1 is true
};

// What differs from OptimConfig's initialisers, which are AdamW's.
std::span<const OptimizerDefault> optimizer_defaults();

}  // namespace gxp

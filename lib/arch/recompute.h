// Which activations a unit keeps from its forward for its backward pass, and which are made again
// right before it, in exchange for their memory: by the kernels that made them, so to the same bits
// (Chen et al., arXiv:1604.06174). Pure.
//
// What one pass over memory makes, the norms' outputs and the activation functions', is KeptOutputs'
// matter: if it is kept, a mode that is not "none" makes it again with all else, for the backward
// behind. Attention's scores never exist (kernels/ops.h). So what is left are outputs of products.
// With C channels and T positions, to make again what a token has costs
//   2 C operations   an element of the products' outputs, at the matrix products' rate,
//   2 T              an element of attention's output, at the lower rate of its kernel.
// So "selective" keeps attention's output (ActivationSpec::costly), which is a ninth of a GPT-2
// block's activations, and makes the others again; "full" keeps nothing but the stream between
// units. Neither makes a unit's output again: the next unit has kept it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"

namespace gxp {

enum class Recompute { kNone, kSelective, kFull };

// In the order of the enumerators.
inline constexpr std::array<std::string_view, 3> kRecomputeNames = {"none", "selective", "full"};
constexpr std::array<std::string_view, 3> words_of(Recompute) { return kRecomputeNames; }

// Whether forward keeps it for backward.
bool keeps(Recompute recompute, const ActivationSpec& saved);

// By unit: `recompute` for those with saved activations whose names one of the patterns (with *, ?
// and [...]) matches, none for the others. Throws kConfig for a pattern that matches none of them.
std::vector<Recompute> recompute_by_unit(const Architecture& architecture, Recompute recompute,
                                         const std::vector<std::string>& patterns);

}  // namespace gxp

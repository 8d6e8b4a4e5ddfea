// The activations that a unit keeps from forward to backward, and those that are recomputed right
// before backward to save memory, by the same kernels and so with the same bits (Chen et al.,
// arXiv:1604.06174). Pure.
//
// Outputs of one memory-bound pass (norms and activation functions) are handled by KeptOutputs: if
// they are kept, a mode other than "none" recomputes them with all others, right before the
// backward. Attention's scores never exist (kernels/ops.h). The remaining activations are outputs
// of matrix products. With C channels and T positions, recomputing one element costs
//   2 C operations   of a matrix product's output, at the rate of matrix products,
//   2 T              of attention's output, at the lower rate of its kernel.
// "selective" therefore keeps attention's output (ActivationSpec::costly), which is a ninth of a
// GPT-2 block's activations, and recomputes the others; "full" keeps only the residual stream
// between units. Neither recomputes a unit's output: the next unit has kept it.
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

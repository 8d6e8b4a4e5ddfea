// Which algorithm runs a call: a pure function, so that all ranks choose the same.
#pragma once

#include <cstddef>
#include <string_view>

#include "lib/collective/algorithm.h"

namespace gxp {

struct Choice {
  const Algorithm* algorithm = nullptr;
  std::string_view reason;
};

// `wanted` is "auto" or an algorithm's name; a collective that has no algorithm of that name takes
// the one it has. `layout_invariant` limits auto to algorithms whose order ignores the layout.
Choice choose_algorithm(Collective collective, int world_size, size_t bytes,
                        std::string_view wanted, bool layout_invariant);

// Throws kConfig, with the names there are, unless `wanted` is "auto" or the name of an all-reduce.
void check_algorithm_name(std::string_view wanted);

}  // namespace gxp

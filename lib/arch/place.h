// Appending to a list of a unit. Only this folder includes it.
#pragma once

#include <utility>
#include <vector>

#include "lib/arch/decoder.h"

namespace gxp {

// Appends to a list, and notes where.
template <class E, class Spec>
void place(std::vector<Spec>& list, Places<E>& places, E what, Spec spec) {
  places.set(what, list.size());
  list.push_back(std::move(spec));
}

}  // namespace gxp

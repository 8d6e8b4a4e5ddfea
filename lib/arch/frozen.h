// Frozen parameters: tensors that a run reads and does not train. They have no gradient of their
// own, no part in its norm, no optimizer state and no update. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/arch/architecture.h"

namespace gxp {

// Marks the tensors whose names one of the patterns (with *, ? and [...]) matches; the name's
// "transformer." or "model." (HuggingFaceFamily::prefix) may be left out. Throws kConfig for a pattern that matches none, and
// if nothing is left to train.
void freeze(Architecture& architecture, const std::vector<std::string>& patterns);

}  // namespace gxp

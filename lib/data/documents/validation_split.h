// Which documents of a file are kept out of training, for validation.
#pragma once

#include <cstdint>

namespace gxp {

// Whether document `number` (from 0) of a file is for validation, if `fraction` (0 <= fraction < 1)
// of them are: one of each 1 / fraction that follow each other, at a place in them that is drawn by
// their number alone. So the share is exact, as far as whole documents go, no period of the file
// coincides with it, and runs of different seeds, world sizes or lengths have the same split, so
// that their losses compare. A file of fewer documents may have none. Pure; O(1). Its values are part
// of the contract: what was validated must not be trained on by a later version.
bool is_for_validation(uint64_t number, double fraction);

}  // namespace gxp

// Work that rank 0 does for all ranks.
#pragma once

#include <functional>

namespace gxp {

class Communicator;

// [collective] Rank 0 calls `act`. If that throws an Error, every rank throws it, with its kind.
// Other errors: the communicator's.
void do_on_rank_zero(Communicator& communicator, const std::function<void()>& act);

}  // namespace gxp

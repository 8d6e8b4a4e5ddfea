// PMIx, as Open MPI's mpirun offers it to the ranks it starts: enough of it to pass one text from
// rank 0 to all. Its library is loaded when needed; nothing of it is needed to build.
// Source: PMIx Standard 4.1, chapters 4 (client), 5 (put, get) and 6 (fence).
#pragma once

#include <string>
#include <string_view>

#include "lib/base/deadline.h"

namespace gxp {

// Called once by every rank. Rank 0 gives `text`; other ranks' texts are ignored. Returns rank 0's
// text when all ranks have called it. Throws kUnavailable if there is no library or no server,
// kPeer if the server says no or is late, as when a rank does not come.
std::string pass_by_pmix(bool is_rank_0, std::string_view text, Deadline deadline);

}  // namespace gxp

// What `gxp train --explain-failure` shows.
#pragma once

#include <vector>

#include "lib/job/failure/rank_failure.h"
#include "lib/report/report.h"

namespace gxp {

// "gxp.train-failure/1": who is to blame, where it was stuck, what the others waited for, how far the
// job was and what to do. Lines of the sources are those of this program, where it is the build that
// failed. `all_threads`: of every rank, not of the one to blame only. `failures` is not empty.
Report explain_failure(const std::vector<RankFailure>& failures, bool all_threads);

}  // namespace gxp

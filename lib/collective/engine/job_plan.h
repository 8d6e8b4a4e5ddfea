// The plan (topo/plan/rank_plan.h) for a job's ranks, from the file that comm.topology names.
#pragma once

#include <span>
#include <string>

#include "lib/base/deadline.h"
#include "lib/net/store/store.h"
#include "lib/topo/plan/rank_plan.h"

namespace gxp {

// `file`: as gxp topo plan writes it (topo/plan/plan_file.h); empty: an empty plan. `hosts`: of each
// rank, numbered from 0 in order of appearance; empty: all on one.
//   Errors  kIo, kCorrupt: no such plan, and the message names the command that writes one;
//           kConfig: as plan_for_ranks().
RankPlan plan_for_job(const std::string& file, int ranks, std::span<const int> hosts);

// Rank 0's plan, on all ranks, since the file may differ between hosts. All ranks call it, or none.
RankPlan share_plan_for_job(const std::string& file, std::span<const int> hosts, Store& store,
                            int ranks, Deadline deadline);

}  // namespace gxp

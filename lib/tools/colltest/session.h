// A whole run: cases in order, in cycles, with the table written as rows come.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/tools/colltest/cases.h"
#include "lib/tools/colltest/copy_rates.h"
#include "lib/tools/colltest/nccl_table.h"

namespace gxp {

struct Session {
  std::vector<RankInfo> ranks;  // on rank 0; empty elsewhere
  BenchMedium medium;
  std::vector<CopyRate> copies;  // none without GPUs
  std::vector<CaseResult> results;
};

// All ranks together. `table` is each operation's, but for its name, its notes and the copies'
// rate. `write` gets pieces of the text on rank 0; empty: no text.
Session run_session(Communicator& communicator, const BenchDevice& place,
                    std::span<const BenchCase> cases, NcclTable table,
                    const std::function<void(const std::string&)>& write);

}  // namespace gxp

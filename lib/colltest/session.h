// A whole run: cases in order, in cycles, with the table written as rows come.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/colltest/nccl_table.h"
#include "lib/colltest/runner.h"

namespace gxp {

struct SessionOptions {
  RunnerOptions runner;
  int cycles = 1;   // each repeats the sizes of a type, reduction and root; 0: for ever
  NcclTable table;  // but for the operation; of a text
  std::optional<double> min_busbw;
};

struct Session {
  std::vector<RankInfo> ranks;  // on rank 0; empty elsewhere
  std::vector<CaseResult> results;
};

// All ranks together. `write` gets pieces of the text on rank 0; empty: no text.
Session run_session(Communicator& communicator, Device& device, std::span<const BenchCase> cases,
                    const SessionOptions& options,
                    const std::function<void(const std::string&)>& write);

}  // namespace gxp

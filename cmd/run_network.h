// A run file's settings for a given number of ranks: for gxp train and the commands that plan it.
#pragma once

#include <string>

#include "lib/base/environment.h"
#include "lib/config/run_config.h"
#include "lib/replay/traffic.h"
#include "lib/report/report.h"

namespace gxp {

inline constexpr int kMostPlannedRanks = 4096;

struct LaunchRequest;

// The ranks on each of several hosts, as `gxp train --nproc ... --nnodes ...` starts them.
struct PlannedRanks {
  int nproc = 1;
  int nnodes = 1;
  [[nodiscard]] int world_size() const { return nproc * nnodes; }
};

// The job's ranks, as the command that starts them knows them, or each of them.
PlannedRanks planned_ranks(const LaunchRequest& launch, const Environment& environment);
// Their number, also where the hosts have unlike numbers of ranks.
int world_size_of(const LaunchRequest& launch, const Environment& environment);

// The settings with which a run file is trained on these ranks: hybrid strategies shard within a
// host, of nproc ranks, unless parallel.shard_size says otherwise.
RunConfig settings_on(RunConfig config, const PlannedRanks& ranks);

// How a plan counts documents in rows.
inline Fact documents_fact(const RunConfig& config) {
  return {{"documents"}, std::string(config.data.documents)};
}

// Ranks of one host share memory where a chosen transport's row says `shares_memory`. The profile
// is this machine's, as for rank 0. kUnavailable: an engine other than native, whose traffic gxp
// cannot predict. kConfig, kIo, kCorrupt: comm.algorithm, comm.profile.
Network network_of_run(const RunConfig& config, const PlannedRanks& ranks,
                       const Environment& environment);

}  // namespace gxp

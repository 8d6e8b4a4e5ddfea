#include "cmd/allreduce_test/modes.h"

#include <algorithm>

#include "cmd/result_file.h"
#include "lib/base/log.h"
#include "lib/tools/colltest/simulate/simulate.h"
#include "lib/tools/topology/read/cluster_file.h"
#include "lib/tools/topology/rings/rank_order.h"
#include "lib/transport/table/table.h"

namespace gxp {

namespace {

SimulatedCases on_cluster(const AllreduceOptions& options, const JobSettings& job) {
  const Cluster cluster(load_cluster(options.simulate));
  const int ranks = options.ranks > 0 ? options.ranks : cluster.gpus();
  const bool planned = options.rank_order == RankOrder::kPlanned;
  const std::vector<int> gpu_of_rank =
      planned ? plan_ranks(cluster, ranks) : place_ranks(cluster, ranks);
  const RankPlan plan = options.channel_order == RankOrder::kPlanned
                            ? plan_of_ranks(cluster, gpu_of_rank)
                            : RankPlan{};
  return simulate_cases(expand(case_request(options, job.comm), ranks), cluster, gpu_of_rank,
                        selection_of(job), !options.trace.empty(), plan);
}

SimulatedCases over_profile(const AllreduceOptions& options, const JobSettings& job,
                            const Environment& environment) {
  const int ranks = std::max(1, options.launch.nproc);
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks * options.launch.nnodes; ++rank) hosts.push_back(rank / ranks);
  const std::string transport =
      plan_transports(job.comm.transport, options.launch.nnodes, ranks).name();
  const GroupTopology topology{
      .world_size = int(hosts.size()), .hosts = hosts, .transport = transport};
  if (topology.world_size < 2)
    fail(ErrorKind::kUsage, "--simulate profile: one rank has no links; use --nproc 2");
  return simulate_cases(expand(case_request(options, job.comm), topology.world_size), topology,
                        find_profile(job.comm.profile, environment), selection_of(job),
                        !options.trace.empty());
}

}  // namespace

void simulate_cases(const AllreduceOptions& options, const JobSettings& job,
                    const Environment& environment) {
  check_writable(options.trace);
  check_writable(options.output_file);
  check_algorithm_name(job.comm.algorithm);
  const SimulatedCases done = options.simulate == kSimulateProfile
                                  ? over_profile(options, job, environment)
                                  : on_cluster(options, job);
  for (const std::string& note : done.notes) log_info("{}", note);
  print(done.report, options.format);
  if (!options.trace.empty()) write_file(options.trace, done.trace);
}

}  // namespace gxp

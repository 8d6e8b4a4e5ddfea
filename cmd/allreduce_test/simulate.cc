#include "cmd/allreduce_test/modes.h"

#include "cmd/result_file.h"
#include "lib/base/log.h"
#include "lib/colltest/simulate.h"
#include "lib/topo/read/cluster_file.h"
#include "lib/topo/rings/rank_plan.h"

namespace gxp {

void simulate_cases(const AllreduceOptions& options, const JobSettings& job) {
  check_writable(options.trace);
  check_writable(options.output_file);
  check_algorithm_name(job.comm.algorithm);
  const Cluster cluster(load_cluster(options.simulate));
  const int ranks = options.ranks > 0 ? options.ranks : cluster.gpus();
  const SelectionSettings settings = selection_of(job);
  const bool planned = options.rank_order == RankOrder::kPlanned;
  const std::vector<int> gpu_of_rank =
      planned ? plan_ranks(cluster, ranks) : place_ranks(cluster, ranks);
  const RankPlan plan = options.channel_order == RankOrder::kPlanned
                            ? plan_of_ranks(cluster, gpu_of_rank)
                            : RankPlan{};
  const SimulatedCases done =
      simulate_cases(expand(case_request(options, job.comm), ranks), cluster, gpu_of_rank, settings,
                     !options.trace.empty(), plan);
  for (const std::string& note : done.notes) log_info("{}", note);
  print(done.report, options.format);
  if (!options.trace.empty()) write_file(options.trace, done.trace);
}

}  // namespace gxp

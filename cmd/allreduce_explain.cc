#include "cmd/allreduce_explain.h"

#include <fmt/format.h>

#include "cmd/result_file.h"
#include "lib/bench/explain.h"
#include "lib/collective/job_plan.h"

namespace gxp {

void explain_cases(const AllreduceOptions& options, const JobSettings& job,
                   const Environment& environment, int world_size,
                   std::span<const BenchCase> cases) {
  check_writable(options.svg);
  const CommunicatorOptions communicator =
      communicator_options(job, find_profile(job.comm.profile, environment));
  const bool ordinary = options.memory == "ordinary";
  const std::string transport = job.comm.transport == "auto" ? "shm" : job.comm.transport;
  const RankPlan plan = plan_for_job(job.comm.topology, world_size, {});
  const GroupTopology topology{.world_size = world_size,
                               .hosts = {},
                               .transport = transport,
                               .shared_space = transport == "shm",
                               .orders = orders_of(plan)};
  const Explanation explanation =
      explain(cases, topology, choice_of(communicator), communicator.profile, ordinary);
  print(explanation.plans, options.format);
  if (options.format == Format::kText && !explanation.steps.empty())
    write_stdout(fmt::format("\n{}:\n{}", explanation.steps_head, explanation.steps));
  if (!options.svg.empty()) write_file(options.svg, explanation.picture);
}

}  // namespace gxp

#include "cmd/allreduce_test/modes.h"

#include <fmt/format.h>

#include "cmd/result_file.h"
#include "lib/base/bytes.h"
#include "lib/base/host_caches.h"
#include "lib/collective/communicator.h"
#include "lib/collective/engine/job_plan.h"
#include "lib/collective/engine/shared_memory/startup_benchmark.h"
#include "lib/collective/tune/shared_methods.h"
#include "lib/tools/colltest/explain/explain.h"
#include "lib/transport/table/table.h"

namespace gxp {
namespace {

constexpr int kMostThreads = 16;

// What ranks of one host would measure at their start, measured here by threads.
std::string measure_here(Profile& profile, const std::string& transport, int world_size,
                         bool use_cma) {
  if (world_size < 2) return "";
  if (messages_compete(profile, transport, world_size) &&
      profile.machine.cpu == this_machine().cpu) {
    const LinkClass methods = *find_methods(profile, transport, world_size);
    profile = with_methods(std::move(profile), methods, use_cma);
    return "as calibrated";
  }
  if (world_size > kMostThreads) return "not measured: too many ranks for this host";
  StartupBenchmark done = benchmark_here(world_size, use_cma);
  if (done.methods.curves.empty()) return "not measured: this machine is too busy";
  done.methods.transport = transport;
  profile = with_methods(std::move(profile), done.methods, done.cma);
  return fmt::format("measured here in {:.1f} ms, as ranks do at their start; caches {} and {}",
                     done.seconds * 1e3, format_bytes(own_caches().l1_bytes),
                     format_bytes(own_caches().l2_bytes));
}

}  // namespace

void explain_cases(const AllreduceOptions& options, const JobSettings& job,
                   const Environment& environment, int world_size,
                   std::span<const BenchCase> cases) {
  check_writable(options.svg);
  CommunicatorOptions communicator =
      communicator_options(job, find_profile(job.comm.profile, environment));
  const TransportChoice transports = plan_transports(job.comm.transport, 1, world_size);
  const std::string transport = transports.name();
  const RankPlan plan = plan_for_job(job.comm.topology, world_size, {});
  const GroupTopology topology{.world_size = world_size,
                               .hosts = {},
                               .transport = transport,
                               .shared_arena = transports.shares_memory(),
                               .orders = orders_of(plan)};
  const bool measures = transports.shares_memory() && options.launch.nnodes == 1;
  const std::string measured =
      measures ? measure_here(communicator.profile, transport, world_size, job.comm.cma) : "";
  Explanation explanation =
      explain(cases, topology, communicator.selection, communicator.profile, options.bench.memory);
  if (!measured.empty()) explanation.plans.facts.push_back({{"shared_memory"}, measured});
  print(explanation.plans, options.format);
  if (options.format == Format::kText && !explanation.steps.empty())
    write_stdout(fmt::format("\n{}:\n{}", explanation.title, explanation.steps));
  if (!options.svg.empty()) write_file(options.svg, explanation.svg);
}

}  // namespace gxp

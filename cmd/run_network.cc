#include "cmd/run_network.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/collective/communicator.h"
#include "lib/collective/engine/job_plan.h"
#include "lib/config/strategy.h"
#include "lib/job/join.h"
#include "lib/transport/table/table.h"

namespace gxp {
namespace {

TransportChoice transports_of(const CommConfig& comm, const PlannedRanks& ranks) {
  TransportChoice choice = plan_transports(comm.transport, ranks.nnodes, ranks.nproc);
  if (!choice.refusal.empty())
    fail(ErrorKind::kConfig, "plan {} hosts with comm.transport {}: {}use auto", ranks.nnodes,
         comm.transport, choice.refusal);
  return choice;
}

}  // namespace

PlannedRanks planned_ranks(const LaunchRequest& launch, const Environment& environment) {
  if (launch.nproc > 0) return {.nproc = launch.nproc, .nnodes = launch.nnodes};
  const RankIdentity identity = identity_from(environment);
  return {.nproc = identity.local_world_size,
          .nnodes = identity.world_size / identity.local_world_size};
}

int world_size_of(const LaunchRequest& launch, const Environment& environment) {
  return launch.starts_ranks() ? std::max(1, launch.nproc) * launch.nnodes
                               : identity_from(environment).world_size;
}

RunConfig settings_on(RunConfig config, const PlannedRanks& ranks) {
  if (find_strategy(config.parallel.strategy).hybrid && config.parallel.shard_size == 0)
    config.parallel.shard_size = ranks.nproc;
  return config;
}

Network network_of_run(const RunConfig& config, const PlannedRanks& ranks,
                       const Environment& environment) {
  const CommConfig& comm = config.comm;
  if (comm.engine != "auto" && comm.engine != "native")
    fail(ErrorKind::kUnavailable,
         "plan a run with comm.engine {}: only engine native's traffic can be predicted; set "
         "comm.engine=native",
         comm.engine);
  const JobSettings job{.comm = comm,
                        .layout_invariant = config.train.deterministic != Determinism::kOff,
                        .configuration = {}};
  const CommunicatorOptions options =
      communicator_options(job, find_profile(comm.profile, environment));
  const TransportChoice transports = transports_of(comm, ranks);
  Network network{.world_size = ranks.world_size(), .transport = transports.name()};
  network.shared_arena = transports.shares_memory();
  network.choice = options.selection;
  network.profile = options.profile;
  for (int rank = 0; rank < ranks.world_size() && ranks.nnodes > 1; ++rank)
    network.hosts.push_back(rank / ranks.nproc);
  network.plan = plan_for_job(comm.topology, ranks.world_size(), network.hosts);
  return network;
}

}  // namespace gxp

#include "cmd/run_network.h"

#include "lib/base/error.h"
#include "lib/collective/engine/job_plan.h"
#include "lib/job/join.h"
#include "lib/program/strategy.h"

namespace gxp {
namespace {

std::string transport_of(const CommConfig& comm, const PlannedRanks& ranks) {
  const bool one_host = ranks.nnodes == 1;
  if (comm.transport == "shm" && !one_host)
    fail(ErrorKind::kConfig, "plan {} hosts: comm.transport shm joins the ranks of one; use auto",
         ranks.nnodes);
  if (comm.transport != "auto") return comm.transport;
  if (one_host) return "shm";
  return ranks.nproc > 1 ? "shm+tcp" : "tcp";
}

}  // namespace

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
         "plan a run with comm.engine {}: that library decides itself what it sends; plan with "
         "native",
         comm.engine);
  const JobSettings job{
      .comm = comm, .layout_invariant = config.train.deterministic != "off", .configuration = {}};
  const CommunicatorOptions options =
      communicator_options(job, find_profile(comm.profile, environment));
  Network network{.world_size = ranks.world_size(), .transport = transport_of(comm, ranks)};
  network.shared_space = network.transport.starts_with("shm");
  network.choice = choice_of(options);
  network.profile = options.profile;
  for (int rank = 0; rank < ranks.world_size() && ranks.nnodes > 1; ++rank)
    network.hosts.push_back(rank / ranks.nproc);
  network.plan = plan_for_job(comm.topology, ranks.world_size(), network.hosts);
  return network;
}

}  // namespace gxp

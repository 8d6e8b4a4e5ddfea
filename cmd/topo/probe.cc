#include "cmd/topo/probe.h"

#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/base/host_name.h"
#include "lib/collective/communicator.h"
#include "lib/collective/engine/table/engines.h"
#include "lib/collective/gather_texts.h"
#include "lib/config/load.h"
#include "lib/config/print.h"
#include "lib/tools/colltest/link_probe.h"
#include "lib/transport/table/table.h"

namespace gxp {
namespace {

JobSettings job_of(const TopoProbeOptions& options, CommConfig comm) {
  FlatConfiguration configuration = {{"--probe-seconds", fmt::format("{}", options.seconds)}};
  RunConfig run;
  run.comm = comm;
  for (auto& setting : flatten(run)) {
    if (setting.first.starts_with("comm.")) configuration.push_back(std::move(setting));
  }
  return {.comm = std::move(comm), .configuration = std::move(configuration)};
}

// Every rank's CPU at this moment.
std::vector<int> cpus_of_ranks(Communicator& communicator) {
  std::vector<int> cpus(size_t(communicator.world_size()));
  cpus[size_t(communicator.rank())] = sched_getcpu();
  communicator.all_gather(memory_of(cpus), DType::kI32);
  return cpus;
}

void measure(Communicator& communicator, const ProbeOptions& options,
             std::vector<MeasuredLink>& links) {
  const std::vector<std::string> names = gather_texts(communicator, host_name());
  const std::vector<int> cpus = cpus_of_ranks(communicator);
  const auto cpu_here = [&](int rank) {
    return communicator.share_host(0, rank) ? cpus[size_t(rank)] : -1;
  };
  const std::string_view transports = communicator.transport_name();
  for (const ProbedLink& link : probe_links(communicator, options)) {
    const bool one_host = communicator.share_host(link.from, link.to);
    links.push_back({.from = link.from,
                     .to = link.to,
                     .from_host = names[size_t(link.from)],
                     .to_host = names[size_t(link.to)],
                     .one_host = one_host,
                     .from_cpu = cpu_here(link.from),
                     .to_cpu = cpu_here(link.to),
                     .transport = std::string(transport_of_pair(transports, one_host)),
                     .latency_s = link.latency_s,
                     .gb_per_s = link.gb_per_s,
                     .interface = link.interface,
                     .link_gb_per_s = link.link_gb_per_s});
  }
}

// Over the transport that was asked for, or over all: what `auto` takes for each pair, and within
// hosts also what it does not.
std::vector<MeasuredLink> measure_all(const TopoProbeOptions& options,
                                      const Environment& environment, const CommConfig& comm) {
  const std::unique_ptr<Device> device = make_cpu_device();
  JobSettings job = job_of(options, comm);
  if (comm.transport == "auto" && choose_engine(comm).is_own)
    job.transports = transports_for_all_hosts();
  std::vector<MeasuredLink> measured;
  std::string before;
  run_rank(options.launch, environment, job, *device, [&](Communicator& communicator) {
    const std::string last = std::exchange(before, communicator.transport_name());
    if (last == before) return;
    measure(communicator, {.seconds = options.seconds, .only_within_hosts = !last.empty()},
            measured);
  });
  return measured;
}

}  // namespace

void add_probe_options(CLI::App& app, TopoProbeOptions& options) {
  app.add_flag("--probe", options.on,
               "Measure latency and bandwidth between ranks, and show them on rank 0's host. "
               "Every transport that joins two ranks is measured, or the one of --set "
               "comm.transport=NAME. Needs --nproc, --nnodes or a launcher");
  add_number_option(app, "--probe-seconds", options.seconds, 0.05, 60,
                    "Seconds per transport and direction of a pair of ranks")
      ->type_name("SECONDS");
  add_set_comm_option(app, options.comm_sets);
  add_launch_options(app, options.launch);
}

int probe_topology(TopoProbeOptions& options,
                   const std::function<void(const std::vector<MeasuredLink>&)>& use) {
  const Environment environment = process_environment();
  place_host(options.launch, environment);
  const RankIdentity identity = identity_for(options.launch, environment);
  const CommConfig comm = load_comm_config(options.comm_sets, environment);
  const bool launches = identity.launcher == LauncherKind::kNone;
  if ((launches ? options.launch.nproc * options.launch.nnodes : identity.world_size) < 2)
    fail(ErrorKind::kUsage, "--probe: one rank has no links; use --nproc 2");
  check_job(job_of(options, comm), environment);
  if (const auto launched = launch_ranks(options.launch, environment, comm)) return *launched;
  const std::vector<MeasuredLink> measured = measure_all(options, environment, comm);
  if (identity.rank == 0) use(measured);
  return kExitOk;
}

}  // namespace gxp

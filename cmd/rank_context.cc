#include "cmd/rank_context.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <memory>

#include "lib/base/log.h"
#include "lib/net/launcher.h"
#include "lib/net/rendezvous.h"
#include "lib/net/socket.h"
#include "lib/transport/inproc.h"
#include "lib/transport/table.h"

namespace gxp {
namespace {

using Seconds = std::chrono::duration<double>;

Deadline after_seconds(double seconds) {
  return Deadline::after(std::chrono::duration_cast<Deadline::Duration>(Seconds(seconds)));
}

// argv as the kernel has it: the ranks get the same command line.
std::vector<std::string> own_argv() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

TcpOptions tcp_options(const CommConfig& comm) {
  TcpOptions tcp;
  tcp.streams = comm.streams;
  tcp.interface = comm.interface;
  if (comm.socket_buffer_bytes > 0) tcp.buffer_bytes = comm.socket_buffer_bytes;
  return tcp;
}

// What the ranks compare. Hosts may name their interfaces differently, and their profiles alike.
FlatConfiguration agreed_configuration(const JobSettings& settings, const Profile& profile) {
  FlatConfiguration agreed = settings.configuration;
  std::erase_if(agreed, [](const auto& setting) { return setting.first == "comm.interface"; });
  agreed.emplace_back("content of comm.profile", fmt::format("{:016x}", hash_of(profile)));
  return agreed;
}

// Tells the other ranks, leaves the job, and throws the first cause: of ranks that lose a peer, or
// find the disk full after another has, each says why the job ends, not what it saw of it.
[[noreturn]] void fail_with_first_cause(Store& store, const Error& error) {
  const bool consequence = error.kind() == ErrorKind::kPeer;
  if (!consequence) store.abort(store.rank(), error.what());
  const auto verdict = store.wait_verdict(Deadline::after(std::chrono::seconds(1)));
  store.close();
  if (!verdict || verdict->rank == store.rank() || verdict->reason == error.what()) throw error;
  fail(ErrorKind::kPeer, "rank {}: {}", verdict->rank, verdict->reason);
}

}  // namespace

CommunicatorOptions communicator_options(const JobSettings& settings) {
  const CommConfig& comm = settings.comm;
  check_algorithm_name(comm.algorithm);
  return {.algorithm = comm.algorithm,
          .layout_invariant = settings.layout_invariant,
          .channels = comm.channels,
          .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(comm.timeout_s)),
          .segment_bytes = comm.segment_bytes,
          .profile = comm.profile.empty() ? builtin_profile() : load_profile(comm.profile)};
}

void add_launch_options(CLI::App& app, LaunchRequest& request) {
  app.add_option("--nproc", request.nproc, "Ranks to start on this host")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  app.add_option("--nnodes", request.nnodes, "Hosts that run this same command")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  app.add_option("--node-rank", request.node_rank, "Which of them this one is, from 0")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--master", request.master, "Where rank 0, on the first host, listens")
      ->type_name("HOST:PORT");
  app.add_option("--join-timeout", request.join_timeout_s,
                 "Seconds to wait for all ranks to come; 60")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
}

std::optional<int> launch_ranks(const LaunchRequest& request, const Environment& environment) {
  const bool asked = request.nproc > 1 || request.nnodes > 1;
  const RankIdentity identity = identity_from(environment);
  if (identity.source == "gxp launcher" || !asked) return std::nullopt;
  if (identity.source != "single process") {
    fail(ErrorKind::kUsage,
         "--nproc {}: this process is already rank {} of {} ({}); leave --nproc and --nnodes out",
         request.nproc, identity.rank, identity.world_size, identity.source);
  }
  if (request.node_rank >= request.nnodes) {
    fail(ErrorKind::kUsage, "--node-rank {}: must be below --nnodes, {}", request.node_rank,
         request.nnodes);
  }
  LaunchOptions options{.nproc = std::max(1, request.nproc), .argv = own_argv()};
  options.host_count = request.nnodes;
  options.host_index = request.node_rank;
  if (!request.master.empty()) options.master = parse_endpoint(request.master);
  return launch(options, environment);
}

void run_rank(const LaunchRequest& request, const Environment& environment,
              const JobSettings& settings, Device& device,
              const std::function<void(Communicator&)>& work) {
  const RankIdentity identity = identity_from(environment);
  const CommunicatorOptions options = communicator_options(settings);
  if (identity.world_size == 1) {
    InprocWorld alone(1);
    Communicator communicator(alone.make_transport(0), device, options);
    work(communicator);
    return;
  }
  set_log_rank(identity.rank);
  const Deadline joined = after_seconds(request.join_timeout_s);
  const Secret secret = require_secret(environment);
  Rendezvous job = join_job(identity, environment, joined);
  if (identity.rank == 0)
    log_info("{} ranks, identity from: {}", identity.world_size, identity.source);
  const TransportContext context{.rank = identity.rank,
                                 .world_size = identity.world_size,
                                 .store = job.store.get(),
                                 .secret = &secret,
                                 .deadline = joined,
                                 .master_addr = identity.master_addr,
                                 .tcp = tcp_options(settings.comm)};
  try {
    check_configuration(*job.store, agreed_configuration(settings, options.profile), joined);
    Communicator communicator(make_transport(settings.comm.transport, context), device, options);
    work(communicator);
    job.close(after_seconds(request.join_timeout_s));
  } catch (const Error& error) {
    fail_with_first_cause(*job.store, error);
  } catch (const std::exception& error) {
    fail_with_first_cause(*job.store, Error(ErrorKind::kInternal, error.what()));
  }
}

}  // namespace gxp

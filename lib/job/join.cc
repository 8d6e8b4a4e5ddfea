#include "lib/job/join.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <list>

#include "lib/base/log.h"
#include "lib/base/log_queue.h"
#include "lib/base/running_time.h"
#include "lib/base/to_error.h"
#include "lib/collective/communicator.h"
#include "lib/collective/engine/job_plan.h"
#include "lib/collective/engine/table/engines.h"
#include "lib/collective/flight/diagnosis.h"
#include "lib/collective/gather_texts.h"
#include "lib/job/verbs_place.h"
#include "lib/net/identity/host_identity.h"
#include "lib/net/launch/launcher.h"
#include "lib/net/socket/socket.h"
#include "lib/net/store/rank_survey.h"
#include "lib/net/store/rendezvous.h"
#include "lib/transport/peers/inproc.h"
#include "lib/transport/table/table.h"
#include "lib/transport/verbs/verbs_context.h"

namespace gxp {
namespace {

using Seconds = std::chrono::duration<double>;

Deadline after_seconds(double seconds) {
  return Deadline::after(std::chrono::duration_cast<Deadline::Duration>(Seconds(seconds)));
}

// Of a host that is unreachable: as long as a collective waits, unless the setting says otherwise.
Deadline::Duration silence_limit(const CommConfig& comm) {
  const double seconds = comm.silence_s > 0 ? comm.silence_s : comm.timeout_s;
  return std::chrono::duration_cast<Deadline::Duration>(Seconds(seconds));
}

TcpOptions tcp_options(const CommConfig& comm) {
  TcpOptions tcp;
  tcp.connections = comm.streams;
  tcp.interface = comm.interface;
  tcp.ports = parse_port_range(comm.port_range, "comm.port_range");
  tcp.protect = comm.protect;
  tcp.silence = silence_limit(comm);
  if (comm.socket_buffer_bytes > 0) tcp.buffer_bytes = comm.socket_buffer_bytes;
  return tcp;
}

VerbsOptions verbs_options(const CommConfig& comm) {
  return {.devices = comm.verbs_devices,
          .gid_index = comm.verbs_gid_index,
          .pkey_index = comm.verbs_pkey_index,
          .traffic_class = comm.verbs_traffic_class,
          .queue_pairs = comm.verbs_queue_pairs,
          .timeout_s = comm.timeout_s};
}

// What the ranks compare. Hosts may have other interfaces and directories.
FlatConfiguration agreed_configuration(const JobSettings& settings, const Profile& profile) {
  FlatConfiguration agreed = settings.configuration;
  std::erase_if(agreed, [](const auto& setting) {
    return setting.first == "comm.interface" || setting.first == "comm.flight_recorder" ||
           setting.first == "comm.verbs_devices" || setting.first == "comm.verbs_gid_index";
  });
  agreed.emplace_back("content of comm.profile", fmt::format("{:016x}", hash_of(profile)));
  return agreed;
}

Profile own_profile(const JobSettings& settings, const Environment& environment) {
  return find_profile(settings.comm.profile, environment);
}

// Rank 0's. A home directory may be one for many kinds of machines.
Profile shared_profile(Store& store, const JobSettings& settings, const Environment& environment,
                       Deadline deadline) {
  const auto find = [&] {
    const Profile profile = own_profile(settings, environment);
    const std::string& cpu = profile.machine.cpu;
    if (cpu != builtin_profile().machine.cpu && cpu != this_machine().cpu)
      log_warn(
          "the cost model was calibrated on another CPU, '{}'; calibrate here: gxp allreduce-test "
          "--calibrate",
          cpu);
    return to_toml(profile);
  };
  return parse_profile(store.from_rank_0("profile", find, deadline), "of rank 0");
}

// Tells the other ranks, leaves the job, and throws the first cause: of ranks that lose a peer, or
// find the disk full after another has, each says why the job ends, not what it saw of it. What is
// wrong between two ranks, as while they connect, may be known to one of them alone.
[[noreturn]] void fail_with_first_cause(Store& store, const Error& error) {
  constexpr std::chrono::milliseconds kCauseComes{500};
  const bool may_be_consequence =
      error.kind() == ErrorKind::kPeer && dynamic_cast<const Tampered*>(&error) == nullptr;
  const bool consequence =
      may_be_consequence && store.wait_verdict(Deadline::after(kCauseComes)).has_value();
  if (!consequence && may_be_consequence)
    store.inquire(store.rank(), error.what());  // it may have waited for a rank that is stopped
  else if (!consequence)
    store.abort(store.rank(), error.what());
  const auto verdict = store.wait_verdict(Deadline::after(std::chrono::seconds(1)));
  store.close();
  if (!verdict || verdict->reason == error.what()) throw error;
  if (verdict->rank == store.rank() && !consequence) throw error;
  fail(ErrorKind::kPeer, "rank {}: {}", verdict->rank, verdict->reason);
}

// run_rank() of a job that is one rank.
void run_alone(const Environment& environment, const JobSettings& settings, Device& device,
               const std::function<void(Communicator&)>& work) {
  plan_for_job(settings.comm.topology, 1, {});  // one rank needs none, but is told what is wrong
  InprocWorld alone(1);
  CommunicatorOptions options = communicator_options(settings, own_profile(settings, environment));
  options.reporting.recorder = settings.recorder;
  Communicator communicator(alone.make_transport(0), device, options);
  work(communicator);
}

// run_rank() where the engine's own launcher has brought the ranks together.
void run_joined_rank(const LaunchRequest& request, const Environment& environment,
                     const JobSettings& settings, Device& device,
                     const std::function<void(Communicator&)>& work) {
  const RunningTimeWatch time;
  const LogQueue log(STDERR_FILENO);
  const EngineRow& engine = choose_engine(settings.comm);
  const RankIdentity identity = identity_from(environment);
  if (identity.world_size > 1) set_log_rank(identity.rank);
  const CommunicatorOptions options = communicator_options(settings, builtin_profile());
  const TransportContext ranks{.rank = identity.rank,
                               .world_size = identity.world_size,
                               .deadline = after_seconds(request.join_timeout_s)};
  Communicator communicator(engine.make({.ranks = ranks,
                                         .comm = settings.comm,
                                         .device = device,
                                         .selection = options.selection}),
                            options.timeout);
  if (identity.rank == 0)
    log_info("{} ranks, identity from: {}; engine: {}", identity.world_size,
             to_string(identity.launcher), engine.name);
  try {
    check_configuration(
        [&](std::string_view, std::string_view text) { return gather_texts(communicator, text); },
        agreed_configuration(settings, options.profile));
    work(communicator);
  } catch (const std::exception& error) {
    communicator.abort(error.what());  // or its end would wait for the other ranks
    throw;
  }
}

TransportContext transport_context(const RankIdentity& identity, const Rendezvous& job,
                                   const JobSettings& settings, Deadline joined) {
  TransportContext context{.rank = identity.rank,
                           .world_size = identity.world_size,
                           .store = job.store.get(),
                           .secret = &job.secret,
                           .deadline = joined,
                           .master_addr = job.master_addr,
                           .tcp = tcp_options(settings.comm),
                           .gpu = settings.gpu,
                           .use_cma = settings.comm.cma};
  VerbsContext& verbs = change_verbs(context);
  verbs.options = verbs_options(settings.comm);
  verbs.place = [gpu = settings.gpu] { return place_on_this_host(gpu); };
  return context;
}

// The same on all ranks, which compare their settings.
CommunicatorOptions agreed_options(Store& store, const JobSettings& settings,
                                   const Environment& environment, Deadline joined) {
  Profile profile = shared_profile(store, settings, environment, joined);
  check_configuration(store, agreed_configuration(settings, profile), joined);
  return communicator_options(settings, std::move(profile));
}

std::unique_ptr<Engine> make_engine(const JobSettings& settings, const EngineContext& context) {
  const EngineRow& engine =
      settings.chooses_by_gpus ? choose_engine_of_job(context) : choose_engine(context.comm);
  return engine.make(context);
}

// Between each rank and the one of the same number on the next host; without a probe, as one
// connection will do.
std::unique_ptr<Transport> make_second_transport(Store& store, TransportContext context,
                                                 int ranks_per_host) {
  store.begin_keys_with("second ");
  context.tcp.connections = 1;
  context.tcp.buffer_bytes = 0;
  const auto follows = [=, ranks = context.world_size](int a, int b) {
    return b == (a + ranks_per_host) % ranks;
  };
  return make_tcp_transport(context, [=](int a, int b) { return follows(a, b) || follows(b, a); });
}

// The survey reaches the server while this lives.
class SurveyedServer {
 public:
  SurveyedServer(RankSurvey* survey, StoreServer* server) : survey_(survey) {
    if (survey_ != nullptr) survey_->connect(server);
  }
  ~SurveyedServer() {
    if (survey_ != nullptr) survey_->connect(nullptr);
  }
  SurveyedServer(const SurveyedServer&) = delete;
  SurveyedServer& operator=(const SurveyedServer&) = delete;

 private:
  RankSurvey* survey_;
};

// run_rank() where rank 0's store brings the ranks together.
void run_rank_by_store(const LaunchRequest& request, const Environment& environment,
                       const JobSettings& settings, Device& device,
                       const std::function<void(Communicator&)>& work) {
  const RunningTimeWatch time;  // first: pauses during the rendezvous do not count either
  const LogQueue log(STDERR_FILENO);
  const RankIdentity identity = identity_from(environment);
  set_log_rank(identity.rank);
  const Deadline joined = after_seconds(request.join_timeout_s);
  std::optional<FlightRecorder> own;
  if (settings.recorder == nullptr)
    own.emplace(identity.rank, identity.world_size, settings.comm.flight_recorder);
  FlightRecorder& recorder = own ? *own : *settings.recorder;
  Rendezvous job = join_job(identity, environment, joined, silence_limit(settings.comm));
  if (identity.rank == 0)
    log_info("{} ranks, identity from: {}", identity.world_size, to_string(identity.launcher));
  const TransportContext context = transport_context(identity, job, settings, joined);
  connect_diagnosis(*job.store, job.server.get(), recorder, settings.comm.flight_recorder);
  if (settings.on_verdict) job.store->set_witness(settings.on_verdict);
  const SurveyedServer surveyed(settings.survey, job.server.get());
  // All are there until the store knows why the job ends, and peers have what they were sent.
  std::unique_ptr<Transport> second;
  std::list<Communicator> communicators;
  try {
    CommunicatorOptions options = agreed_options(*job.store, settings, environment, joined);
    options.reporting = {&recorder, job.store.get()};
    if (settings.second_transport != nullptr && identity.local_world_size < identity.world_size) {
      second = make_second_transport(*job.store, context, identity.local_world_size);
      *settings.second_transport = second.get();
    }
    CommConfig comm = settings.comm;
    for (const std::string& transport :
         settings.transports.empty() ? std::vector{comm.transport} : settings.transports) {
      comm.transport = transport;
      job.store->begin_keys_with(transport + " ");
      auto engine = make_engine(settings, {.ranks = context,
                                           .comm = comm,
                                           .device = device,
                                           .selection = options.selection,
                                           .profile = options.profile,
                                           .local_rank = identity.local_rank,
                                           .recorder = &recorder});
      communicators.emplace_back(std::move(engine), options.timeout, options.reporting);
      work(communicators.back());
    }
    job.close(after_seconds(request.join_timeout_s));
  } catch (const Error& error) {
    fail_with_first_cause(*job.store, error);
  } catch (...) {
    fail_with_first_cause(*job.store, to_error(std::current_exception()));
  }
}

void check_place(const char* option, int given, int lowest, int found, std::string_view source) {
  if (given >= lowest && given != found)
    fail(ErrorKind::kUsage, "{} {}: it is {} by {}; leave the option out, or unset the variable",
         option, given, found, source);
}

}  // namespace

SelectionSettings selection_of(const JobSettings& settings) {
  return {.algorithm = settings.comm.algorithm,
          .layout_invariant = settings.layout_invariant,
          .channels = settings.comm.channels,
          .segment_bytes = settings.comm.segment_bytes};
}

CommunicatorOptions communicator_options(const JobSettings& settings, Profile profile) {
  const CommConfig& comm = settings.comm;
  check_algorithm_name(comm.algorithm);
  return {.selection = selection_of(settings),
          .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(comm.timeout_s)),
          .profile = std::move(profile)};
}

void check_job(const JobSettings& settings, const Environment& environment) {
  choose_engine(settings.comm);
  tcp_options(settings.comm);
  communicator_options(settings, own_profile(settings, environment));
}

void place_host(LaunchRequest& request, const Environment& environment) {
  if (find_variable(environment, "GXP_RANK") != nullptr) {
    const RankIdentity rank = identity_from(environment);
    request.nnodes = rank.world_size / rank.local_world_size;
    request.spares = 0;
    request.node_rank = rank.rank / rank.local_world_size;
    return;
  }
  request.nnodes = std::max(1, request.given_nnodes);
  request.node_rank = std::max(0, request.given_node_rank);
  if (request.min_nnodes > 0 && request.max_restarts == 0)
    fail(
        ErrorKind::kUsage,
        "--nnodes {}:{}: a job goes on with fewer hosts only by train's --max-restarts; give that, "
        "or one number of hosts",
        request.min_nnodes, request.given_nnodes);
  if (request.spares > 0 && (request.max_restarts == 0 || request.given_nnodes == 0))
    fail(ErrorKind::kUsage,
         "--spares {}: a spare host takes the place of a lost one by --max-restarts; give that, "
         "and --nnodes, the number of hosts without the spares",
         request.spares);
  if (request.nproc == 0 && request.all_nodes() <= 1) return check_single_rank(environment);
  const auto host = host_identity_from(environment);
  if (!host || (!host->count && request.all_nodes() == 1)) return;
  // A script may start a step of Slurm on each host, and number the hosts itself.
  if (host->count == 1 && find_variable(environment, "SLURM_STEP_ID") != nullptr &&
      (request.given_node_rank >= 0 || !request.master.empty()))
    return;
  request.is_host = true;
  check_place("--node-rank", request.given_node_rank, 0, host->index, host->source);
  if (host->count) {
    const bool in_range = request.min_nnodes > 0 && request.spares == 0 &&
                          *host->count >= request.min_nnodes && *host->count <= request.nnodes;
    check_place(request.spares > 0 ? "--nnodes with --spares" : "--nnodes",
                request.given_nnodes > 0 && !in_range ? request.all_nodes() : 0, 1, *host->count,
                host->source);
    request.nnodes = *host->count - request.spares;
  }
  request.node_rank = host->index;
  if (request.master.empty() && !host->master_addr.empty())
    request.master =
        to_string(Endpoint{host->master_addr, host->master_port.value_or(kDefaultMasterPort)});
}

LaunchOptions placed_ranks(const LaunchRequest& request) {
  LaunchOptions options{.nproc = std::max(1, request.nproc), .argv = {}};
  options.host_count = request.all_nodes();
  options.host_index = request.node_rank;
  if (!request.master.empty()) options.master = parse_endpoint(request.master);
  return options;
}

RankIdentity identity_for(const LaunchRequest& request, const Environment& environment) {
  if (request.is_host) return {};
  return request.starts_ranks() ? identity_of_starter(environment) : identity_from(environment);
}

std::vector<std::string> own_argv() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

std::optional<int> launch_ranks(const LaunchRequest& request, const Environment& environment,
                                const CommConfig& comm) {
  const RankIdentity identity = identity_for(request, environment);
  if (identity.launcher == LauncherKind::kGxp || !request.starts_ranks()) return std::nullopt;
  if (identity.launcher != LauncherKind::kNone) {
    fail(ErrorKind::kUsage,
         "--nproc {}: this process is already rank {} of {} ({}); leave --nproc and --nnodes out",
         request.nproc, identity.rank, identity.world_size, to_string(identity.launcher));
  }
  if (choose_engine(comm).joins_ranks) {
    fail(ErrorKind::kUsage,
         "--nproc {}: engine '{}' needs its own launcher; use mpirun -n {} gxp ... without --nproc "
         "and --nnodes",
         request.nproc, comm.engine, std::max(1, request.nproc) * request.nnodes);
  }
  if (request.node_rank >= request.all_nodes()) {
    fail(ErrorKind::kUsage, "--node-rank {}: must be below --nnodes, {}", request.node_rank,
         request.all_nodes());
  }
  LaunchOptions options = placed_ranks(request);
  options.argv = own_argv();
  options.bind = !request.no_bind;
  // By then the ranks of other hosts have ended.
  options.stopped_after =
      std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(2 * comm.timeout_s));
  options.max_restarts = request.max_restarts;
  options.join_timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(request.join_timeout_s));
  options.ports = parse_port_range(comm.port_range, "comm.port_range");
  options.min_hosts = request.least_nnodes();
  const int most = request.nnodes * options.nproc;
  options.accepts = [most, accepts = request.accepts](int ranks) {
    return ranks <= most && (!accepts || accepts(ranks));
  };
  if (request.saved_step) options.saved_step = request.saved_step;
  options.replica_dir = request.replica_dir;
  options.held_parts = request.held_parts;
  return launch(options, environment);
}

void run_rank(const LaunchRequest& request, const Environment& environment,
              const JobSettings& settings, Device& device,
              const std::function<void(Communicator&)>& work) {
  const EngineRow& engine = choose_engine(settings.comm);
  if (engine.joins_ranks) return run_joined_rank(request, environment, settings, device, work);
  if (identity_from(environment).world_size == 1 && engine.is_own)
    return run_alone(environment, settings, device, work);
  run_rank_by_store(request, environment, settings, device, work);
}

}  // namespace gxp

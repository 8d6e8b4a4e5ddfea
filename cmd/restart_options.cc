#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cmd/options.h"
#include "cmd/train_options.h"
#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/base/text/read_number.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/net/identity/identity.h"
#include "lib/net/launch/held_parts.h"
#include "lib/net/launch/host_memory.h"
#include "lib/net/launch/job_progress.h"
#include "lib/train/replica/host_replicas.h"

namespace gxp {
namespace {

// How often the launcher says that it has started the ranks again; 0 where it does not say.
int restart_count(const Environment& environment, const char* variable) {
  const std::string* text = find_variable(environment, variable);
  if (text == nullptr) return 0;
  const int count = read_number<int>(*text).value_or(-1);
  if (count < 0)
    fail(ErrorKind::kConfig, "read how often the job was restarted: {}='{}' is no number", variable,
         *text);
  return count;
}

// Of all settings that decide over the run. A batch job may hold several runs, and torchrun's jobs
// have the same name unless the user gives one.
std::string digest_of(const KeyValues& settings) {
  // Then grad_accum follows from the number of ranks, which a restart may change.
  const bool shares_batch =
      std::ranges::find(settings, KeyValues::value_type("train.global_batch", "0")) ==
      settings.end();
  std::string text;
  for (const auto& [key, value] : settings)
    if (!key.starts_with("comm.") && !(shares_batch && key == "train.grad_accum"))
      text += key + "=" + value + "\n";
  return fmt::format("{:016x}", hash64(std::as_bytes(std::span(text))));
}

// The launchers that can start this process again: each tells by a variable that it has.
struct Restarter {
  const char* name;
  const char* job;
  const char* cluster;  // null: jobs have no other name
  const char* count;
  // Of jobs to which the user has given no name. torchrun does not count the restarts for a host
  // that comes, and a new host has not counted those before; but a name that the user gives is that
  // of one job. null: all restarts are counted.
  const char* unnamed;
};
constexpr Restarter kRestarters[] = {
    {"torchrun", "TORCHELASTIC_RUN_ID", nullptr, "TORCHELASTIC_RESTART_COUNT", "none"},
    {"slurm", "SLURM_JOB_ID", "SLURM_CLUSTER_NAME", "SLURM_RESTART_COUNT", nullptr}};

int total_restarts(const Environment& environment) {
  int total = 0;
  for (const Restarter& restarter : kRestarters)
    if (find_variable(environment, restarter.job) != nullptr)
      total += restart_count(environment, restarter.count);
  return total;
}

JobNames job_names(const RankIdentity& identity, const Environment& environment,
                   const RunOptions& run) {
  JobNames names;
  // Random, so that only a restart finds it.
  if (identity.launcher == LauncherKind::kGxp) names.push_back({"gxp " + identity.job, true});
  for (const Restarter& restarter : kRestarters) {
    const std::string* job = find_variable(environment, restarter.job);
    if (job == nullptr) continue;
    const std::string* cluster =
        restarter.cluster == nullptr ? nullptr : find_variable(environment, restarter.cluster);
    // --overwrite asks for another run, not for what this one has saved.
    const bool named = restarter.unnamed != nullptr && *job != restarter.unnamed && !run.overwrite;
    names.push_back({fmt::format("{} {} {} {}", restarter.name, cluster == nullptr ? "-" : *cluster,
                                 *job, digest_of(run.settings)),
                     named || restart_count(environment, restarter.count) > 0});
  }
  return names;
}

std::vector<HeldPart> held_parts(const std::string& directory) {
  std::vector<HeldPart> held;
  for (const ReplicaPart& part : HostReplicas(directory).parts())
    held.push_back({part.job, part.step, part.rank, part.frozen,
                    part.world_size * part.files_of_a_rank, files_of(part)});
  return held;
}

// Another launcher has started this rank.
void check_other_launcher(const LaunchRequest& launch, LauncherKind launcher,
                          const Environment& environment) {
  const bool tells = std::ranges::any_of(kRestarters, [&](const Restarter& restarter) {
    return find_variable(environment, restarter.job) != nullptr;
  });
  if (!tells)
    fail(ErrorKind::kUsage,
         "--max-restarts: {} does not tell its ranks whether it has started them again; use "
         "--resume where there is a checkpoint",
         to_string(launcher));
  const int restarts = total_restarts(environment);
  if (restarts > launch.max_restarts)
    fail(ErrorKind::kUsage, "--max-restarts {}: this is restart {} of the job", launch.max_restarts,
         restarts);
}

}  // namespace

void add_restart_option(CLI::App& app, LaunchRequest& launch) {
  add_under(app, kStartingRanks, [&] {
    add_number_option(
        app, "--max-restarts", launch.max_restarts, 0, 1'000'000,
        "Start all ranks again, at most N times, when one was killed by a signal or has lost a "
        "peer or its device (exit code 5). They continue from the run's newest checkpoint. Under "
        "torchrun and Slurm these start the ranks, which then continue in the same way");
    add_number_option(
        app, "--spares", launch.spares, 0, 65535,
        "Hosts that run this command in addition to --nnodes, and wait: with --max-restarts, one "
        "of them takes the place of a host that is lost");
  });
}

void prepare_restarts(TrainOptions& options, const RunConfig& run, const Environment& environment) {
  LaunchRequest& launch = options.launch;
  const bool trains = !options.only_looks(run) && !options.times.by_class;
  const bool replicates = trains && run.checkpoint.replica != ReplicaPlace::kNone;
  if (replicates && launch.max_restarts == 0)
    fail(ErrorKind::kUsage,
         "checkpoint.replica \"{}\": replicas are read when ranks are started again; give "
         "--max-restarts, or set it to \"none\"",
         run.checkpoint.replica);
  if (launch.max_restarts == 0) return;
  if (!trains)
    fail(ErrorKind::kUsage, "--max-restarts: there is nothing to continue without training");
  if (run.checkpoint.dir.empty())
    fail(
        ErrorKind::kUsage,
        "--max-restarts: checkpoint.dir is not set, so each restart would begin at step 1; set it, "
        "and checkpoint.every");
  if (launch.min_nnodes > 0 && run.train.global_batch == 0)
    fail(ErrorKind::kUsage,
         "--nnodes {}:{}: the batch of a step would depend on the hosts that are there; set "
         "train.global_batch",
         launch.min_nnodes, launch.given_nnodes);
  launch.accepts = [batch = run.train.global_batch, rows = run.train.micro_batch](int ranks) {
    return batch == 0 || batch % (int64_t{rows} * ranks) == 0;
  };
  const LauncherKind launcher =
      launch.is_host ? LauncherKind::kNone : identity_of_starter(environment).launcher;
  if (launcher == LauncherKind::kGxp) return;
  if (replicates && launcher != LauncherKind::kNone)
    fail(ErrorKind::kUsage,
         "checkpoint.replica \"{}\": {} keeps no memory from one start of the ranks to the next; "
         "start them by gxp's own launcher, --nproc, or set it to \"none\"",
         run.checkpoint.replica, to_string(launcher));
  if (launcher != LauncherKind::kNone) return check_other_launcher(launch, launcher, environment);
  if (run.checkpoint.every == 0 && !replicates)
    log_warn(
        "--max-restarts: checkpoint.every is 0, so the run saves nothing before its end, and each "
        "restart begins where the run began");
  if (launch.nproc == 0) launch.nproc = 1;
  if (replicates) {
    launch.replica_dir = run.checkpoint.replica_dir;
    launch.held_parts = held_parts;
  }
  launch.saved_step = [dir = run.checkpoint.dir] {
    const auto steps = complete_steps(dir);
    return steps.empty() ? int64_t{0} : int64_t(steps.back());
  };
}

void connect_to_launcher(TrainOptions& options, const Environment& environment) {
  if (options.launch.max_restarts == 0) return;
  options.run.jobs = job_names(identity_from(environment), environment, options.run);
  if (const std::string* directory = find_variable(environment, kReplicaVariable))
    options.run.replicas.directory = *directory;
  auto inherited = JobProgress::inherited(environment);
  if (!inherited) return;
  // Shared by the two functions.
  const auto progress = std::make_shared<JobProgress>(std::move(*inherited));
  options.run.owns_directories = [progress] { progress->set_owns_directories(); };
  options.run.replicas.replicated = [progress](int64_t step) { progress->set_replicated(step); };
  options.run.begins_step = [progress](int64_t step) { progress->set_step(step); };
}

}  // namespace gxp

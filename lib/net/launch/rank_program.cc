#include "lib/net/launch/rank_program.h"

#include <sched.h>

#include <filesystem>

#include "lib/base/error.h"
#include "lib/net/identity/user_secret.h"
#include "lib/net/launch/host_memory.h"
#include "lib/net/store/store_server.h"

namespace gxp {
namespace {

// Of the CPUs that this process may use; empty: there are fewer than ranks, or too many to tell.
std::vector<int> share_of_cpus(int local_rank, int nproc) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  const auto n = int(cpus.size());
  if (n < nproc && nproc % n != 0) return {};  // the system shares them out more evenly
  if (n < nproc) return {cpus[size_t(local_rank % n)]};
  return {cpus.begin() + n * local_rank / nproc, cpus.begin() + n * (local_rank + 1) / nproc};
}

// This program, which is the ranks', too.
std::string own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    fail(ErrorKind::kIo,
         "start ranks: read /proc/self/exe, the path of this program: {}; is /proc mounted?",
         error.message());
  return path;
}

Environment rank_environment(const LaunchOptions& options, const Environment& environment,
                             const Attempt& attempt, int local_rank) {
  Environment result = environment;
  result.erase(kStoreFdVariable);
  result.erase(kProgressFdVariable);
  result.erase(kReplicaVariable);
  if (!attempt.host_memory.empty()) result[kReplicaVariable] = attempt.host_memory;
  const RendezvousPoint& point = attempt.point;
  result.erase(kJobVariable);
  if (!attempt.job.empty()) result[kJobVariable] = attempt.job;
  result["GXP_RANK"] = std::to_string(options.host_index * options.nproc + local_rank);
  result["GXP_WORLD_SIZE"] = std::to_string(options.nproc * options.host_count);
  result["GXP_LOCAL_RANK"] = std::to_string(local_rank);
  result["GXP_LOCAL_WORLD_SIZE"] = std::to_string(options.nproc);
  result["GXP_MASTER_ADDR"] = point.store.host;
  result["GXP_MASTER_PORT"] = std::to_string(point.store.port);
  // No rank of another attempt gets in. The launchers have compared the user's secret.
  if (!attempt.job.empty()) {
    const Secret own = point.secret.for_job(fmt::format("{} {}", attempt.job, attempt.number));
    result[kSecretVariable] = own.hex();
    return result;
  }
  // A rank that reads the user's file itself can name it where another host has another.
  if (!point.secret.is_users()) result[kSecretVariable] = point.secret.hex();
  return result;
}

}  // namespace

RendezvousPoint open_rendezvous(const LaunchOptions& options, const Environment& environment) {
  if (options.host_count == 1) {
    Fd listener = listen_tcp({"127.0.0.1", 0});
    const Endpoint store = local_endpoint(listener.get());
    return {store, Secret::generate(), std::move(listener)};
  }
  if (options.master.host.empty())
    fail(ErrorKind::kConfig, "launch on {} hosts: rank 0's host is unknown; give --master",
         options.host_count);
  return {options.master, given_or_user_secret(environment), Fd()};
}

std::string listening_host(const LaunchOptions& options) {
  return is_loopback(options.master.host) ? options.master.host : "";
}

ChildProcess::Program rank_program(const LaunchOptions& options, const Environment& environment,
                                   const Attempt& attempt, int local_rank, const sigset_t& mask) {
  ChildProcess::Program program{
      .path = own_program(),
      .argv = options.argv,
      .environment = rank_environment(options, environment, attempt, local_rank),
      .mask = mask,
      .cpus = options.bind ? share_of_cpus(local_rank, options.nproc) : std::vector<int>{}};
  const auto inherit = [&](const char* variable, int fd) {
    program.inherited.push_back(fd);
    program.environment[variable] = std::to_string(fd);
  };
  if (options.host_index > 0 || local_rank > 0) return program;
  if (attempt.point.listener.valid()) inherit(kStoreFdVariable, attempt.point.listener.get());
  if (attempt.progress != nullptr) inherit(kProgressFdVariable, attempt.progress->fd());
  return program;
}

}  // namespace gxp

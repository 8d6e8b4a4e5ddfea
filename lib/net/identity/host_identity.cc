#include "lib/net/identity/host_identity.h"

#include <fmt/format.h>

#include <array>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/read_number.h"
#include "lib/net/identity/identity.h"

namespace gxp {
namespace {

constexpr const char* kPodIndex = "JOB_COMPLETION_INDEX";
constexpr const char* kTorchHost = "PET_NODE_RANK";
constexpr int kMostPort = 65535;

std::string first_of(const Environment& environment, const char* name, const char* other) {
  for (const char* variable : {name, other})
    if (const std::string* text = find_variable(environment, variable)) return *text;
  return "";
}

std::optional<HostIdentity> place_in_step(const Environment& environment) {
  const RankIdentity task = identity_from(environment);
  const std::string* counts = find_variable(environment, "SLURM_STEP_TASKS_PER_NODE");
  const auto per_host = tasks_per_host(counts == nullptr ? "" : *counts);
  if (int(per_host.size()) != task.world_size) return std::nullopt;
  return HostIdentity{.source = "SLURM_NODEID",
                      .index = task.rank,
                      .count = task.world_size,
                      .master_addr = task.master_addr,
                      .master_port = task.master_port};
}

std::optional<HostIdentity> place_for_torchrun(const Environment& environment) {
  HostIdentity place{.source = kTorchHost, .count = find_number(environment, "PET_NNODES", 1)};
  place.index = find_number(environment, kTorchHost).value_or(0);
  place.master_addr = first_of(environment, "PET_MASTER_ADDR", "MASTER_ADDR");
  place.master_port = find_number(environment, "PET_MASTER_PORT", 1, kMostPort);
  if (!place.master_port) place.master_port = find_number(environment, "MASTER_PORT", 1, kMostPort);
  return place;
}

int count_in(const Environment& environment, const char* name) {
  const std::string* text = find_variable(environment, name);
  return text == nullptr ? 0 : read_number<int>(*text).value_or(0);
}

// The variable by which a launcher whose ranks gxp does not read says that it started several
// processes, "FLUX_JOB_SIZE=4"; "": there is none.
std::string sign_of_other_ranks(const Environment& environment) {
  constexpr std::array kSizes = {
      "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",     "MV2_COMM_WORLD_SIZE",
      "FLUX_JOB_SIZE",    "JSM_NAMESPACE_SIZE",   "HOROVOD_SIZE", "PET_NNODES"};
  constexpr std::array kRanks = {"LOCAL_RANK", "PMIX_RANK", "PALS_RANKID", "ALPS_APP_PE"};
  for (const char* name : kSizes)
    if (count_in(environment, name) > 1) return fmt::format("{}={}", name, environment.at(name));
  for (const char* name : kRanks)
    if (count_in(environment, name) > 0) return fmt::format("{}={}", name, environment.at(name));
  return "";
}

}  // namespace

std::optional<HostIdentity> host_identity_from(const Environment& environment) {
  const auto has = [&](const char* name) { return find_variable(environment, name) != nullptr; };
  if (has(kTorchHost) && !has("GXP_RANK") && !has("TORCHELASTIC_RUN_ID"))
    return place_for_torchrun(environment);
  switch (identity_from(environment).launcher) {
    case LauncherKind::kSlurm:
      return place_in_step(environment);
    case LauncherKind::kNone:
      break;
    default:
      return std::nullopt;
  }
  const auto index = find_number(environment, kPodIndex);
  if (!index) return std::nullopt;
  return HostIdentity{.source = kPodIndex, .index = *index};
}

void check_single_rank(const Environment& environment) {
  const LauncherKind launcher = identity_from(environment).launcher;
  const int asked = count_in(environment, "PET_NPROC_PER_NODE");
  if (asked > 1 && (launcher == LauncherKind::kBareRank || launcher == LauncherKind::kNone))
    fail(ErrorKind::kUsage,
         "start one rank on this host: PET_NPROC_PER_NODE asks for {}; give --nproc {}", asked,
         asked);
  if (launcher != LauncherKind::kNone) return;
  if (const std::string sign = sign_of_other_ranks(environment); !sign.empty())
    fail(ErrorKind::kUsage,
         "start one rank: {} means that there are others, but this process's RANK is not set; set "
         "RANK and WORLD_SIZE for each process, or give --nproc with the ranks to start here",
         sign);
  const bool is_batch_script = find_variable(environment, "SLURM_JOB_ID") != nullptr;
  if (const int tasks = count_in(environment, "SLURM_NTASKS"); is_batch_script && tasks > 1)
    log_warn(
        "this is a single rank, outside of Slurm's steps, though the job has {} tasks: srun starts "
        "a rank for each, --nproc N starts N ranks on this host",
        tasks);
}

}  // namespace gxp

#include "lib/net/identity/host_identity.h"

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

}  // namespace gxp

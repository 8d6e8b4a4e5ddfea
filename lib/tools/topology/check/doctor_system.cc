// Checks of what the system grants to this process.
#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "lib/base/bytes.h"
#include "lib/base/text/plural.h"
#include "lib/tools/topology/check/doctor_checks.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

constexpr const char* kOfProcess = "it is the process's own, and";
constexpr uint64_t kUnlimited = ~uint64_t{0};

// The soft limit of that name in /proc/self/limits.
std::optional<uint64_t> limit_of(const DoctorSight& sight, std::string_view name) {
  const std::string limits = sight.root.read("/proc/self/limits").value_or("");
  const std::string_view value = value_behind(limits, name);
  if (value.empty()) return std::nullopt;
  return value.starts_with("unlimited") ? kUnlimited : leading_number<uint64_t>(value);
}

// The options of the file system that is mounted there last; none: nothing is.
std::optional<std::string> mount_options(const DoctorSight& sight, std::string_view where) {
  std::optional<std::string> options;
  const std::string mounts = sight.root.read("/proc/self/mountinfo").value_or("");
  for (const std::string_view line : split(mounts, '\n')) {
    if (line.find(fmt::format(" {} ", where)) == std::string_view::npos) continue;
    options = line.substr(line.rfind(' ') + 1);
  }
  return options;
}

// "rw,size=65536k": 64 MiB.
std::optional<uint64_t> size_option(const std::string& options) {
  const size_t at = options.find("size=");
  if (at == std::string::npos) return std::nullopt;
  return parse_bytes(options.substr(at + 5, options.find(',', at) - at - 5));
}

// Interfaces in /proc/net/dev: this process's.
std::set<std::string> own_interfaces(const DoctorSight& sight) {
  std::set<std::string> names;
  const std::string devices = sight.root.read("/proc/net/dev").value_or("");
  for (const std::string_view line : split(devices, '\n')) {
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) names.emplace(trimmed(line.substr(0, colon)));
  }
  return names;
}

}  // namespace

Seen look_at_sysfs(const DoctorSight& sight) {
  const bool has_devices = !sight.root.list("/sys/bus/pci/devices").empty();
  if (!has_devices && !sight.root.read("/proc/bus/pci/devices").value_or("").empty())
    return problem("/proc lists PCIe devices, /sys none: /sys is masked");
  for (const std::string& note : sight.host.notes) {
    if (note.find("is not below /sys/bus/pci") != std::string::npos)
      return problem("the driver has GPUs that /sys does not list: /sys is masked");
  }
  const std::set<std::string> own = own_interfaces(sight);
  if (own.empty()) return not_recorded("/proc/net/dev is");
  for (const std::string& name : sight.root.list("/sys/class/net")) {
    // Among the interfaces there is a file of bonding's.
    if (!own.contains(name) && sight.root.exists("/sys/class/net/" + name + "/type"))
      return warning(fmt::format("/sys shows {}, which this network namespace lacks", name));
  }
  return ok("it shows this host's devices and this namespace's interfaces");
}

Seen look_at_locked_memory(const DoctorSight& sight) {
  const auto limit = limit_of(sight, "Max locked memory");
  if (!limit) return not_recorded(kOfProcess);
  if (*limit == kUnlimited) return ok("unlimited");
  const bool matters = has_rdma(sight);
  constexpr uint64_t kRegistered = 16u << 20;
  if (*limit < kRegistered && sight.process.rdma && !sight.process.rdma->ports.empty())
    return ok(
        fmt::format("{}, but the limit does not apply to this process: 16 MiB could be registered",
                    format_bytes(*limit)));
  return {matters ? DoctorVerdict::kProblem : DoctorVerdict::kOk,
          fmt::format("{}{}", format_bytes(*limit), matters ? "" : ", and there is no RDMA here")};
}

Seen look_at_open_files(const DoctorSight& sight) {
  constexpr uint64_t kEnough = 4096;
  const auto limit = limit_of(sight, "Max open files");
  if (!limit) return not_recorded(kOfProcess);
  if (*limit == kUnlimited) return ok("unlimited");
  return {*limit < kEnough ? DoctorVerdict::kWarning : DoctorVerdict::kOk,
          fmt::format("{} at most", *limit)};
}

Seen look_at_shared_memory(const DoctorSight& sight) {
  constexpr uint64_t kDockers = 64u << 20, kSmall = 1u << 30;  // docker's default is 64 MiB
  if (!sight.root.exists("/proc/self/mountinfo")) return not_recorded(kOfProcess);
  const auto options = mount_options(sight, "/dev/shm");
  if (!options) return problem("nothing is mounted at /dev/shm");
  const auto size = size_option(*options);
  const auto free = sight.process.shared_memory_free_bytes;
  const std::string has = size ? format_bytes(*size) : "half of the host's memory";
  if (size && *size <= kDockers) return problem(fmt::format("it has {}", has));
  if (free && *free < kDockers)
    return problem(fmt::format("{} of {} are free", format_bytes(*free), has));
  if (size && *size < kSmall) return warning(fmt::format("it has {}", has));
  if (free && *free < kSmall)
    return warning(fmt::format("{} of {} are free", format_bytes(*free), has));
  return ok(fmt::format("it has {}", has));
}

Seen look_at_cpu_mask(const DoctorSight& sight) {
  const std::string status = sight.root.read("/proc/self/status").value_or("");
  const std::string_view list = value_behind(status, "Cpus_allowed_list:");
  if (list.empty()) return not_recorded(kOfProcess);
  const auto allowed = CpuSet::parse_list(list);
  if (!allowed) return unseen("/proc/self/status has no list of CPUs");
  DoctorFindings findings;
  for (const DoctorDevice& gpu : gpus_of(sight)) {
    const PartId node = sight.host.find_above(gpu.part, PartKind::kNumaNode);
    if (node == kNoPart) continue;
    const CpuSet near = cpus_of(sight.host[node]);
    if (!near.empty() && !near.intersects(*allowed))
      findings.add(gpu.name,
                   warning(fmt::format("none of its NUMA node's CPUs ({}) is allowed, only {}",
                                       near.to_list(), allowed->to_list())));
  }
  return findings.seen_or(
      fmt::format("CPUs {} are allowed: some near each GPU, if any", allowed->to_list()));
}

Seen look_at_cpu_quota(const DoctorSight& sight) {
  long quota = -1, period = 0;
  if (const auto both = sight.root.read("/sys/fs/cgroup/cpu.max")) {
    if (std::sscanf(both->c_str(), "%ld %ld", &quota, &period) != 2) quota = -1;  // "max 100000"
  } else {
    quota = sight.root.read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").value_or(-1);
    period = sight.root.read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us").value_or(0);
  }
  const bool is_recorded = sight.root.live() || sight.root.exists("/sys/fs/cgroup");
  if (!is_recorded) return not_recorded("/sys/fs/cgroup is");
  if (quota <= 0 || period <= 0) return ok("none");
  const double cpus = double(quota) / double(period);
  const size_t gpus = gpus_of(sight).size();
  const std::string has = fmt::format("{:g} CPUs for {}", cpus, counted(gpus, "GPU"));
  return {cpus < 2 * double(gpus) ? DoctorVerdict::kWarning : DoctorVerdict::kOk, has};
}

Seen look_at_numa_balancing(const DoctorSight& sight) {
  if (sight.host.all_of(PartKind::kNumaNode).size() < 2) return ok("there is one NUMA node");
  const auto setting = sight.root.read_number("/proc/sys/kernel/numa_balancing");
  if (!setting && sight.root.live()) return ok("Linux is built without it");
  if (!setting) return not_recorded("/proc/sys/kernel/numa_balancing is");
  return *setting == 0 ? ok("off") : warning("on");
}

Seen look_at_nccl(const DoctorSight& sight) {
  const ProcessFacts& process = sight.process;
  if (!process.nccl_version.empty()) return ok("version " + process.nccl_version);
  if (gpus_of(sight).empty()) return ok("none, and there are no GPUs here");
  if (process.nccl_error.empty()) return not_recorded("it is");
  return warning(process.nccl_error);
}

}  // namespace gxp

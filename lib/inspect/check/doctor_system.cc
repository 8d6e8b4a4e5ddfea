// Checks of what the system grants to this process.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>

#include "lib/base/bytes.h"
#include "lib/base/text/plural.h"
#include "lib/inspect/check/doctor_checks.h"
#include "lib/inspect/view/part_words.h"
#include "lib/topo/model/cpu_set.h"

namespace gxp {
namespace {

constexpr const char* kNotRecorded =
    "it is the process's own, and not recorded; run it on the host";
constexpr uint64_t kUnlimited = ~uint64_t{0};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The soft limit of that name in /proc/self/limits.
std::optional<uint64_t> limit_of(const DoctorSight& sight, std::string_view name) {
  for (const std::string& line : lines_of(sight.root.read("/proc/self/limits").value_or(""))) {
    if (!line.starts_with(name)) continue;
    const size_t value = line.find_first_not_of(' ', name.size());
    if (value == std::string::npos) return std::nullopt;
    if (line.compare(value, 9, "unlimited") == 0) return kUnlimited;
    uint64_t limit = 0;
    std::from_chars(line.data() + value, line.data() + line.size(), limit);
    return limit;
  }
  return std::nullopt;
}

// The options of the file system that is mounted there last; none: nothing is.
std::optional<std::string> mount_options(const DoctorSight& sight, std::string_view where) {
  std::optional<std::string> options;
  for (const std::string& line : lines_of(sight.root.read("/proc/self/mountinfo").value_or(""))) {
    if (line.find(fmt::format(" {} ", where)) == std::string::npos) continue;
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
  for (const std::string& line : lines_of(sight.root.read("/proc/net/dev").value_or(""))) {
    const size_t colon = line.find(':');
    const size_t begin = line.find_first_not_of(' ');
    if (colon != std::string::npos) names.insert(line.substr(begin, colon - begin));
  }
  return names;
}

}  // namespace

Seen look_at_sysfs(const DoctorSight& sight) {
  const bool has_devices = !sight.root.list("/sys/bus/pci/devices").empty();
  if (!has_devices && !sight.root.read("/proc/bus/pci/devices").value_or("").empty())
    return {DoctorVerdict::kProblem, "/proc has PCIe devices and /sys shows none: it is masked"};
  for (const std::string& note : sight.host.notes) {
    if (note.find("is not below /sys/bus/pci") != std::string::npos)
      return {DoctorVerdict::kProblem, "the driver has GPUs that /sys does not show: it is masked"};
  }
  const std::set<std::string> own = own_interfaces(sight);
  if (own.empty())
    return {DoctorVerdict::kUnseen, "/proc/net/dev is not recorded; run it on the host"};
  for (const std::string& name : sight.root.list("/sys/class/net")) {
    // Bonding's is a file that stands beside interfaces.
    if (!own.contains(name) && sight.root.exists("/sys/class/net/" + name + "/type"))
      return {DoctorVerdict::kWarning,
              fmt::format("/sys shows {}, which this network namespace lacks", name)};
  }
  return {DoctorVerdict::kOk, "it shows this host's devices and this namespace's interfaces"};
}

Seen look_at_locked_memory(const DoctorSight& sight) {
  const auto limit = limit_of(sight, "Max locked memory");
  if (!limit) return {DoctorVerdict::kUnseen, kNotRecorded};
  if (*limit == kUnlimited) return {DoctorVerdict::kOk, "unlimited"};
  const bool matters = has_rdma(sight);
  return {matters ? DoctorVerdict::kProblem : DoctorVerdict::kOk,
          fmt::format("{}{}", format_bytes(*limit), matters ? "" : ", and there is no RDMA here")};
}

Seen look_at_open_files(const DoctorSight& sight) {
  constexpr uint64_t kEnough = 4096;
  const auto limit = limit_of(sight, "Max open files");
  if (!limit) return {DoctorVerdict::kUnseen, kNotRecorded};
  if (*limit == kUnlimited) return {DoctorVerdict::kOk, "unlimited"};
  return {*limit < kEnough ? DoctorVerdict::kWarning : DoctorVerdict::kOk,
          fmt::format("{} at most", *limit)};
}

Seen look_at_shared_memory(const DoctorSight& sight) {
  constexpr uint64_t kDockers = 64u << 20, kSmall = 1u << 30;  // docker's default is 64 MiB
  if (!sight.root.exists("/proc/self/mountinfo")) return {DoctorVerdict::kUnseen, kNotRecorded};
  const auto options = mount_options(sight, "/dev/shm");
  if (!options) return {DoctorVerdict::kProblem, "nothing is mounted at /dev/shm"};
  const auto size = size_option(*options);
  const auto free = sight.process.shared_memory_free_bytes;
  const std::string has = size ? format_bytes(*size) : "half of the host's memory";
  if (size && *size <= kDockers) return {DoctorVerdict::kProblem, fmt::format("it has {}", has)};
  if (free && *free < kDockers)
    return {DoctorVerdict::kProblem, fmt::format("{} are free of {}", format_bytes(*free), has)};
  if (size && *size < kSmall) return {DoctorVerdict::kWarning, fmt::format("it has {}", has)};
  if (free && *free < kSmall)
    return {DoctorVerdict::kWarning, fmt::format("{} are free of {}", format_bytes(*free), has)};
  return {DoctorVerdict::kOk, fmt::format("it has {}", has)};
}

Seen look_at_cpu_mask(const DoctorSight& sight) {
  constexpr std::string_view kKey = "Cpus_allowed_list:\t";
  const std::string status = sight.root.read("/proc/self/status").value_or("");
  const size_t at = status.find(kKey);
  if (at == std::string::npos) return {DoctorVerdict::kUnseen, kNotRecorded};
  const size_t begin = at + kKey.size();
  const auto allowed = CpuSet::parse_list(status.substr(begin, status.find('\n', begin) - begin));
  if (!allowed) return {DoctorVerdict::kUnseen, "/proc/self/status has no list of CPUs"};
  DoctorFindings findings;
  for (const DoctorDevice& gpu : gpus_of(sight)) {
    const PartId node = sight.host.find_above(gpu.part, PartKind::kNumaNode);
    if (node == kNoPart) continue;
    const auto& info = std::get<NumaNodeInfo>(sight.host[node].info);
    const auto near = CpuSet::parse_map(info.affinity);
    if (near && !near->empty() && !near->intersects(*allowed))
      findings.add(DoctorVerdict::kWarning,
                   fmt::format("none of its NUMA node's CPUs ({}) is allowed, only {}",
                               near->to_list(), allowed->to_list()),
                   gpu.name);
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
  if (quota <= 0 || period <= 0) return {DoctorVerdict::kOk, "none"};
  const double cpus = double(quota) / double(period);
  const size_t gpus = gpus_of(sight).size();
  const std::string has = fmt::format("{:g} CPUs for {}", cpus, count_of(gpus, "GPU"));
  return {cpus < 2 * double(gpus) ? DoctorVerdict::kWarning : DoctorVerdict::kOk, has};
}

Seen look_at_numa_balancing(const DoctorSight& sight) {
  if (sight.host.all_of(PartKind::kNumaNode).size() < 2)
    return {DoctorVerdict::kOk, "there is one NUMA node"};
  const auto setting = sight.root.read_number("/proc/sys/kernel/numa_balancing");
  if (!setting && sight.root.exists("/proc/sys/kernel"))
    return {DoctorVerdict::kOk, "the kernel has none"};
  if (!setting)
    return {DoctorVerdict::kUnseen, "/proc/sys/kernel is not recorded; run it on the host"};
  return *setting == 0 ? Seen{DoctorVerdict::kOk, "off"} : Seen{DoctorVerdict::kWarning, "on"};
}

Seen look_at_nccl(const DoctorSight& sight) {
  const ProcessFacts& process = sight.process;
  if (!process.nccl_version.empty()) return {DoctorVerdict::kOk, "version " + process.nccl_version};
  if (gpus_of(sight).empty()) return {DoctorVerdict::kOk, "none, and there are no GPUs here"};
  if (process.nccl_error.empty())
    return {DoctorVerdict::kUnseen, "it is not recorded; run it on the host"};
  return {DoctorVerdict::kWarning, process.nccl_error};
}

}  // namespace gxp

// NUMA nodes, CPUs and caches from /sys/devices/system and /proc/cpuinfo.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/read/sysfs_host.h"

namespace gxp {
namespace {

constexpr const char* kCpus = "/sys/devices/system/cpu";
constexpr const char* kNodes = "/sys/devices/system/node";

// The number of "node3" behind "node"; none if it is something else.
std::optional<int> number_after(std::string_view prefix, std::string_view name) {
  const auto number =
      name.starts_with(prefix) ? whole_number<int>(name.substr(prefix.size())) : std::nullopt;
  return number.value_or(-1) < 0 ? std::nullopt : number;
}

// The value of the first line "KEY : VALUE"; "" if there is none.
std::string value_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos || trimmed(line.substr(0, colon)) != key) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == line.npos ? "" : std::string(line.substr(value));
  }
  return "";
}

// As NCCL names them.
std::string architecture_of(const std::string& cpuinfo) {
  if (!value_of(cpuinfo, "vendor_id").empty()) return "x86_64";
  if (!value_of(cpuinfo, "CPU implementer").empty()) return "arm64";
  if (value_of(cpuinfo, "cpu").starts_with("POWER")) return "ppc64";
  return "";
}

// Linux adds the family's extension to 15; NCCL shifts it by four bits.
int family_of_nccl(int family) { return family > 15 ? 15 + (family - 15) * 16 : family; }

// What /proc/cpuinfo says of the first CPU, and so of all.
NumaNodeInfo read_model(const std::string& cpuinfo) {
  NumaNodeInfo info;
  info.architecture = architecture_of(cpuinfo);
  info.vendor = value_of(cpuinfo, "vendor_id");
  info.model_name = value_of(cpuinfo, info.architecture == "ppc64" ? "cpu" : "model name");
  if (info.architecture != "x86_64") return info;
  info.model = whole_number<int>(value_of(cpuinfo, "model"));
  if (const auto family = whole_number<int>(value_of(cpuinfo, "cpu family")))
    info.family = family_of_nccl(*family);
  return info;
}

uint64_t total_memory_in(std::string_view text) {
  return leading_number<uint64_t>(value_behind(text, "MemTotal:")) * 1024;
}

CpuSet read_cpu_list(const SystemRoot& root, const std::string& path) {
  const auto text = root.read(path);
  return (text ? CpuSet::parse_list(*text) : std::nullopt).value_or(CpuSet());
}

CpuSet read_cpu_map(const SystemRoot& root, const std::string& path) {
  const auto text = root.read(path);
  return (text ? CpuSet::parse_map(*text) : std::nullopt).value_or(CpuSet());
}

CpuSet all_cpus(const SystemRoot& root) {
  CpuSet cpus = read_cpu_list(root, fmt::format("{}/online", kCpus));
  if (!cpus.empty()) return cpus;
  for (const std::string& name : root.list(kCpus)) {
    if (const auto cpu = number_after("cpu", name); cpu && *cpu < CpuSet::kMaxCpus) cpus.add(*cpu);
  }
  return cpus;
}

// Data caches: instructions' are of no use to anyone here.
void read_caches(const SystemRoot& root, const CpuSet& cpus, NumaNodeInfo& node) {
  std::map<std::pair<int, uint64_t>, std::set<std::string>> distinct;
  for (const int cpu : cpus.cpus()) {
    const std::string folder = fmt::format("{}/cpu{}/cache", kCpus, cpu);
    for (const std::string& name : root.list(folder)) {
      const std::string path = folder + "/" + name + "/";
      const auto level = root.read_number(path + "level");
      const auto size = root.read(path + "size");
      if (!level || !size || root.read(path + "type") == "Instruction") continue;
      const auto shared = root.read(path + "shared_cpu_map");
      distinct[{int(*level), parse_bytes(*size).value_or(0)}].insert(
          shared.value_or(std::to_string(cpu)));
    }
  }
  for (const auto& [cache, users] : distinct)
    node.caches.push_back({cache.first, cache.second, int(users.size())});
}

void read_cpus(const SystemRoot& root, const CpuSet& cpus, NumaNodeInfo& node) {
  std::set<std::string> cores;
  for (const int cpu : cpus.cpus()) {
    const std::string path = fmt::format("{}/cpu{}/topology/", kCpus, cpu);
    cores.insert(root.read(path + "thread_siblings").value_or(std::to_string(cpu)));
  }
  node.threads = cpus.count();
  node.cores = int(cores.size());
  node.affinity = cpus.to_map();
  if (node.threads == 0) return;
  const std::string first =
      fmt::format("{}/cpu{}/topology/physical_package_id", kCpus, cpus.cpus()[0]);
  node.package = int(root.read_number(first).value_or(-1));
  read_caches(root, cpus, node);
}

void add_node(HostTree& host, const SystemRoot& root, const CpuSet& cpus, NumaNodeInfo info) {
  read_cpus(root, cpus, info);
  host.add({.kind = PartKind::kNumaNode, .info = std::move(info)});
}

// A node may be offline while its CPUs are online.
void note_stray_cpus(HostTree& host, const CpuSet& online, const CpuSet& of_nodes) {
  CpuSet stray;
  const std::vector<int> known = of_nodes.cpus();
  for (const int cpu : online.cpus()) {
    if (!std::ranges::binary_search(known, cpu)) stray.add(cpu);
  }
  if (stray.empty()) return;
  host.notes.push_back(fmt::format(
      "CPUs {} are online and belong to no NUMA node; they are not shown", stray.to_list()));
}

}  // namespace

PartId find_numa_node(const HostTree& host, long number) {
  for (const PartId id : host.all_of(PartKind::kNumaNode)) {
    if (std::get<NumaNodeInfo>(host[id].info).number == number) return id;
  }
  return kNoPart;
}

void add_numa_nodes(HostTree& host, const SystemRoot& root) {
  NumaNodeInfo model = read_model(root.read("/proc/cpuinfo").value_or(""));
  const CpuSet online = all_cpus(root);
  CpuSet of_nodes;
  if (utsname system{}; model.architecture.empty() && root.live() && ::uname(&system) == 0)
    model.architecture = system.machine;
  for (const std::string& name : root.list(kNodes)) {
    const auto number = number_after("node", name);
    if (!number) continue;
    const std::string path = fmt::format("{}/{}/", kNodes, name);
    NumaNodeInfo info = model;
    info.number = number;
    info.memory_bytes = total_memory_in(root.read(path + "meminfo").value_or(""));
    const CpuSet cpus = read_cpu_map(root, path + "cpumap");
    for (const int cpu : cpus.cpus()) of_nodes.add(cpu);
    // A node without either is for memory that a device may add later.
    if (!cpus.empty() || info.memory_bytes > 0) add_node(host, root, cpus, std::move(info));
  }
  if (!host.roots().empty()) return note_stray_cpus(host, online, of_nodes);
  if (online.empty()) {
    fail(ErrorKind::kUnavailable,
         "read the topology of {}: there are no CPUs below {}; is /sys mounted?", host.name, kCpus);
  }
  model.number = 0;
  model.memory_bytes = total_memory_in(root.read("/proc/meminfo").value_or(""));
  add_node(host, root, online, std::move(model));
  host.absent.push_back(
      "no NUMA nodes (Linux without NUMA, or a masked /sys): all CPUs are shown as one node");
}

}  // namespace gxp

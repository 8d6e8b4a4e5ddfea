// GPUs, NICs and their ports.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "lib/tools/topology/check/lint_rules.h"

namespace gxp {
namespace {

// The values of -arch in nvcc 13 and in older versions.
constexpr std::array<int, 20> kCapabilities = {50, 52, 53, 60, 61,  62,  70,  72,  75,  80,
                                               86, 87, 89, 90, 100, 101, 103, 110, 120, 121};

// A file may name GPUs alone, and leave the rest to NCCL.
bool is_described(const GpuInfo& gpu) {
  return gpu.number || gpu.rank || gpu.compute_capability || gpu.gpu_direct;
}

template <class Info>
void report_duplicate_numbers(const LintSubject& subject, PartKind kind,
                              std::optional<int> Info::*number, std::string_view what,
                              const LintReporter& report, bool per_host = true) {
  using Key = std::optional<std::pair<std::string, std::string>>;
  const auto key_of = [&](const Part& part) {
    const int known = (info_of<Info>(part).*number).value_or(-1);
    return known < 0 ? Key() : Key({std::to_string(known), ""});
  };
  report_duplicates(subject, subject.host.all_of(kind), what, key_of, report, per_host);
}

void check_gpu_rank(const LintPart& one, const LintReporter& report) {
  const auto& gpu = info_of<GpuInfo>(one.part);
  if (is_described(gpu) && gpu.rank.value_or(-1) < 0)
    report(one.place(), "{} has no rank", one.called());
}

void check_gpu_rank_twice(const LintSubject& subject, const LintReporter& report) {
  report_duplicate_numbers(subject, PartKind::kGpu, &GpuInfo::rank, "rank", report, false);
}

void check_gpu_dev(const LintPart& one, const LintReporter& report) {
  const auto& gpu = info_of<GpuInfo>(one.part);
  if (is_described(gpu) && !gpu.number) report(one.place(), "{} has no dev", one.called());
}

void check_gpu_dev_twice(const LintSubject& subject, const LintReporter& report) {
  report_duplicate_numbers(subject, PartKind::kGpu, &GpuInfo::number, "dev", report);
}

// For NVIDIA's GPUs alone: RCCL writes the number of AMD's compute units into "sm".
void check_gpu_sm(const LintPart& one, const LintReporter& report) {
  const auto& gpu = info_of<GpuInfo>(one.part);
  const std::optional<int> sm = gpu.compute_capability;
  if (one.host.dialect == "2" || !is_described(gpu)) return;
  if (!sm) {
    report(one.place(), "{} has no sm", one.called());
  } else if (std::ranges::find(kCapabilities, *sm) == kCapabilities.end()) {
    report(one.place(), "sm {} of {} is no known compute capability", *sm, one.called());
  }
}

void check_gpu_gdr(const LintSubject& subject, const LintReporter& report) {
  const std::vector<PartId> gpus = subject.host.all_of(PartKind::kGpu);
  const auto has = [&](PartId id) { return info_of<GpuInfo>(subject.host[id]).gpu_direct == true; };
  if (std::ranges::none_of(gpus, has)) return;
  for (const PartId id : gpus) {
    const LintPart one = subject.at(id);
    if (is_described(info_of<GpuInfo>(one.part)) && !has(id))
      report(one.place(), "{} has no gdr=\"1\", others have", one.called());
  }
}

void check_gpu_far(const LintSubject& subject, const LintReporter& report) {
  std::set<PartId> near;
  for (const PartId id : subject.host.all_of(PartKind::kNic)) {
    const bool on_pcie = !subject.host[id].bus_id.empty();
    if (on_pcie) near.insert(subject.host.find_above(id, PartKind::kNumaNode));
  }
  if (near.empty()) return;
  for (const PartId id : subject.host.all_of(PartKind::kGpu)) {
    if (!near.contains(subject.host.find_above(id, PartKind::kNumaNode)))
      report(subject.host[id].place, "{} has no NIC in its NUMA node", subject.at(id).called());
  }
}

void check_net_dev(const LintPart& one, const LintReporter& report) {
  if (!info_of<PortInfo>(one.part).number) report(one.place(), "{} has no dev", one.name);
}

void check_net_dev_twice(const LintSubject& subject, const LintReporter& report) {
  report_duplicate_numbers(subject, PartKind::kPort, &PortInfo::number, "dev of a <net>", report);
}

void check_net_speed(const LintPart& one, const LintReporter& report) {
  if (info_of<PortInfo>(one.part).mbit_per_s <= 0)
    report(one.place(), "{} has no speed above 0", one.name);
}

void check_net_same_port(const LintSubject& subject, const LintReporter& report) {
  std::map<std::pair<std::string, int>, PartId> seen;
  for (const PartId id : subject.host.all_of(PartKind::kPort)) {
    const auto& port = info_of<PortInfo>(subject.host[id]);
    if (!port.has_guid() || !port.port) continue;
    const auto [first, is_new] = seen.try_emplace({port.guid, *port.port}, id);
    if (!is_new)
      report(subject.host[id].place, "{} has guid {} and port {}, as {} has", subject.names[id],
             port.guid.substr(0, 40), *port.port, subject.names[first->second]);
  }
}

constexpr auto kDevicesRules = [] {
  using enum Severity;
  return std::to_array<LintRule>({
      {"gpu-rank-missing", kWarning, "a GPU without a rank",
       "NCCL leaves it out, and stops reading its <pci>",
       "add rank, or leave out the whole <gpu>, so that NCCL fills it in",
       each<PartKind::kGpu, check_gpu_rank>, true},
      {"gpu-rank-twice", kError, "two GPUs with the same rank",
       "NCCL finds the first when it looks for a rank", "give each GPU its own rank",
       check_gpu_rank_twice},
      {"gpu-dev-missing", kError, "a GPU without a number",
       "NCCL stops at a <gpu> that has a rank and no dev", "add dev, the CUDA device number",
       each<PartKind::kGpu, check_gpu_dev>, true},
      {"gpu-dev-twice", kError, "two GPUs with the same number",
       "ranks of both would use the same device", "give each GPU its own dev", check_gpu_dev_twice},
      {"gpu-sm-unknown", kWarning, "a GPU of no known compute capability",
       "NVLink bandwidth depends on it; without it NCCL stops at the <gpu>",
       "add sm: 80 for A100, 90 for H100, 100 for B200", each<PartKind::kGpu, check_gpu_sm>, true},
      {"gpu-gdr-differs", kNote, "a GPU without GPUDirect RDMA beside others that have it",
       "its traffic to NICs goes through the host's memory",
       "load nvidia-peermem, or look at gxp topo doctor on the machine", check_gpu_gdr},
      {"gpu-far-from-nics", kWarning, "a GPU whose NUMA node has no NIC",
       "all its network traffic crosses the link between NUMA nodes, unless NCCL finds an NVLink "
       "peer near a NIC",
       "use PXN, or move a NIC", check_gpu_far},
      {"net-dev-missing", kWarning, "a <net> without a number", "NCCL leaves it out",
       "add dev, counted from 0", each<PartKind::kPort, check_net_dev>, true},
      {"net-dev-twice", kError, "two <net>s with the same number",
       "both would be the same NIC for NCCL", "give each its own dev", check_net_dev_twice},
      {"net-speed-missing", kWarning, "a port without a speed", "NCCL takes 10 Gbit/s",
       "add speed in Mbit/s: 400000 for NDR InfiniBand", each<PartKind::kPort, check_net_speed>,
       true},
      {"net-port-twice", kWarning, "two ports with the same guid and number",
       "NCCL takes them for one port, and one of them stays unused (nccl issue 1303)",
       "number the ports of an adapter 1 and 2", check_net_same_port},
  });
}();

}  // namespace

std::string LintPart::called() const {
  if (part.bus_id.empty() || name.find(part.bus_id) != std::string::npos) return name;
  return fmt::format("{} ({})", name, part.bus_id);
}

std::span<const LintRule> lint_devices_rules() { return kDevicesRules; }

}  // namespace gxp

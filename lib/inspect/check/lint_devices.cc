// GPUs, NICs and their ports.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "lib/inspect/check/lint_rules.h"

namespace gxp {
namespace {

// As nvcc 13's -arch, and what older ones had.
constexpr std::array<int, 20> kCapabilities = {50, 52, 53, 60, 61,  62,  70,  72,  75,  80,
                                               86, 87, 89, 90, 100, 101, 103, 110, 120, 121};

const GpuInfo& gpu_of(const LintSubject& subject, PartId id) {
  static const GpuInfo kNone;
  const auto* info = std::get_if<GpuInfo>(&subject.host[id].info);
  return info == nullptr ? kNone : *info;
}

const PortInfo& port_of(const LintSubject& subject, PartId id) {
  static const PortInfo kNone;
  const auto* info = std::get_if<PortInfo>(&subject.host[id].info);
  return info == nullptr ? kNone : *info;
}

// GPUs that say anything: a file may name the devices alone, and leave the rest to NCCL.
std::vector<PartId> described_gpus(const LintSubject& subject) {
  std::vector<PartId> gpus = subject.host.all_of(PartKind::kGpu);
  std::erase_if(gpus, [&](PartId id) {
    const GpuInfo& gpu = gpu_of(subject, id);
    return !gpu.number && !gpu.rank && !gpu.compute_capability && !gpu.gpu_direct;
  });
  return gpus;
}

// Says of the second and further parts with one number that they have it.
template <class NumberOf>
void say_twice(const LintSubject& subject, const std::vector<PartId>& parts, std::string_view what,
               NumberOf number_of, const Say& say) {
  std::map<int, PartId> seen;
  for (const PartId id : parts) {
    const std::optional<int> number = number_of(id);
    if (!number || *number < 0) continue;
    const auto [first, is_new] = seen.try_emplace(*number, id);
    if (!is_new)
      say(subject.host[id].place, fmt::format("{} {} stands twice, first in line {}", what, *number,
                                              subject.host[first->second].place.line));
  }
}

// Of NVIDIA's file alone: RCCL has its "sm" for AMD's compute units.
bool is_nvidia(const LintSubject& subject) { return subject.host.dialect != "2"; }

void check_gpu_rank(const LintSubject& subject, const Say& say) {
  for (const PartId id : described_gpus(subject)) {
    const std::optional<int> rank = gpu_of(subject, id).rank;
    if (rank.value_or(-1) < 0)
      say(subject.host[id].place, fmt::format("{} has no rank", subject.called(id)));
  }
}

void check_gpu_rank_twice(const LintSubject& subject, const Say& say) {
  say_twice(
      subject, subject.host.all_of(PartKind::kGpu), "rank",
      [&](PartId id) { return gpu_of(subject, id).rank; }, say);
}

void check_gpu_dev(const LintSubject& subject, const Say& say) {
  for (const PartId id : described_gpus(subject)) {
    if (!gpu_of(subject, id).number)
      say(subject.host[id].place, fmt::format("{} has no dev", subject.called(id)));
  }
}

void check_gpu_dev_twice(const LintSubject& subject, const Say& say) {
  say_twice(
      subject, subject.host.all_of(PartKind::kGpu), "dev",
      [&](PartId id) { return gpu_of(subject, id).number; }, say);
}

void check_gpu_sm(const LintSubject& subject, const Say& say) {
  if (!is_nvidia(subject)) return;
  for (const PartId id : described_gpus(subject)) {
    const std::optional<int> sm = gpu_of(subject, id).compute_capability;
    if (!sm) {
      say(subject.host[id].place, fmt::format("{} has no sm", subject.called(id)));
    } else if (std::ranges::find(kCapabilities, *sm) == kCapabilities.end()) {
      say(subject.host[id].place,
          fmt::format("sm {} of {} is no known compute capability", *sm, subject.called(id)));
    }
  }
}

void check_gpu_gdr(const LintSubject& subject, const Say& say) {
  const std::vector<PartId> gpus = described_gpus(subject);
  const auto has = [&](PartId id) { return gpu_of(subject, id).gpu_direct == true; };
  if (std::ranges::none_of(gpus, has)) return;
  for (const PartId id : gpus) {
    if (!has(id))
      say(subject.host[id].place,
          fmt::format("{} has no gdr=\"1\", others have", subject.called(id)));
  }
}

void check_gpu_far(const LintSubject& subject, const Say& say) {
  std::set<PartId> near;
  for (const PartId id : subject.host.all_of(PartKind::kNic)) {
    const bool on_pcie = !subject.host[id].bus_id.empty();
    if (on_pcie) near.insert(subject.host.find_above(id, PartKind::kNumaNode));
  }
  if (near.empty()) return;
  for (const PartId id : subject.host.all_of(PartKind::kGpu)) {
    if (!near.contains(subject.host.find_above(id, PartKind::kNumaNode)))
      say(subject.host[id].place,
          fmt::format("{} has no NIC in its NUMA node", subject.called(id)));
  }
}

void check_net_dev(const LintSubject& subject, const Say& say) {
  for (const PartId id : subject.host.all_of(PartKind::kPort)) {
    if (!port_of(subject, id).number)
      say(subject.host[id].place, fmt::format("{} has no dev", subject.names[id]));
  }
}

void check_net_dev_twice(const LintSubject& subject, const Say& say) {
  say_twice(
      subject, subject.host.all_of(PartKind::kPort), "dev of a <net>",
      [&](PartId id) { return port_of(subject, id).number; }, say);
}

void check_net_speed(const LintSubject& subject, const Say& say) {
  for (const PartId id : subject.host.all_of(PartKind::kPort)) {
    if (port_of(subject, id).mbit_per_s <= 0)
      say(subject.host[id].place, fmt::format("{} has no speed above 0", subject.names[id]));
  }
}

void check_net_same_port(const LintSubject& subject, const Say& say) {
  std::map<std::pair<std::string, int>, PartId> seen;
  for (const PartId id : subject.host.all_of(PartKind::kPort)) {
    const PortInfo& port = port_of(subject, id);
    const bool is_real = port.guid.find_first_not_of("0x") != std::string::npos;
    if (!is_real || !port.port) continue;
    const auto [first, is_new] = seen.try_emplace({port.guid, *port.port}, id);
    if (!is_new)
      say(subject.host[id].place,
          fmt::format("{} has guid {} and port {}, as {} has", subject.names[id],
                      port.guid.substr(0, 40), *port.port, subject.names[first->second]));
  }
}

}  // namespace

std::string LintSubject::called(PartId id) const {
  const std::string& bus = host[id].bus_id;
  if (bus.empty() || names[id].find(bus) != std::string::npos) return names[id];
  return fmt::format("{} ({})", names[id], bus);
}

std::span<const LintRow> lint_devices_rows() {
  using enum Severity;
  static constexpr auto kRows = std::to_array<LintRow>({
      {{"gpu-rank-missing", kWarning, "a GPU without a rank",
        "NCCL leaves it out, and stops reading its <pci>",
        "add rank, or leave out the whole <gpu>, so that NCCL fills it in"},
       nullptr,
       check_gpu_rank,
       true},
      {{"gpu-rank-twice", kError, "two GPUs of one rank",
        "NCCL finds the first when it looks for a rank", "give each GPU its own rank"},
       nullptr,
       check_gpu_rank_twice},
      {{"gpu-dev-missing", kError, "a GPU without a number",
        "NCCL stops at a <gpu> that has a rank and no dev", "add dev, the CUDA device number"},
       nullptr,
       check_gpu_dev,
       true},
      {{"gpu-dev-twice", kError, "two GPUs of one number",
        "ranks of both would use the same device", "give each GPU its own dev"},
       nullptr,
       check_gpu_dev_twice},
      {{"gpu-sm-unknown", kWarning, "a GPU of no known compute capability",
        "the bandwidth of an NVLink goes by it; without it NCCL stops at the <gpu>",
        "add sm: 80 for A100, 90 for H100, 100 for B200"},
       nullptr,
       check_gpu_sm,
       true},
      {{"gpu-gdr-differs", kNote, "a GPU without GPUDirect RDMA beside others that have it",
        "its traffic to NICs goes through the host's memory",
        "load nvidia-peermem, or look at gxp topo doctor on the machine"},
       nullptr,
       check_gpu_gdr},
      {{"gpu-far-from-nics", kWarning, "a GPU whose NUMA node has no NIC",
        "all that it sends crosses the link between NUMA nodes, unless NCCL finds it an NVLink "
        "peer",
        "use PXN, or move a NIC"},
       nullptr,
       check_gpu_far},
      {{"net-dev-missing", kWarning, "a <net> without a number", "NCCL leaves it out",
        "add dev, counted from 0"},
       nullptr,
       check_net_dev,
       true},
      {{"net-dev-twice", kError, "two <net>s of one number", "both would be the same NIC for NCCL",
        "give each its own dev"},
       nullptr,
       check_net_dev_twice},
      {{"net-speed-missing", kWarning, "a port without a speed", "NCCL takes 10 Gbit/s",
        "add speed in Mbit/s: 400000 for NDR InfiniBand"},
       nullptr,
       check_net_speed,
       true},
      {{"net-port-twice", kWarning, "two ports of one guid and number",
        "NCCL takes them for one port, and one of them stays unused (nccl issue 1303)",
        "number the ports of an adapter 1 and 2"},
       nullptr,
       check_net_same_port},
  });
  return kRows;
}

}  // namespace gxp

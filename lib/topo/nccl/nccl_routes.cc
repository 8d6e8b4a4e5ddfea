#include "lib/topo/nccl/nccl_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "lib/topo/model/gpu_models.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

// NCCL's limit; the ports that a GPU takes in turn repeat long before it.
constexpr size_t kMaxChannels = 64;
constexpr size_t kNoRow = ~size_t{0};

// The lowest bits of `value` in reverse order, for a count that is a power of two.
size_t mirror_bits(size_t value, size_t count) {
  size_t mirrored = 0;
  for (size_t bit = 1, mirror = count >> 1; bit < count; bit <<= 1, mirror >>= 1) {
    if ((value & bit) != 0) mirrored |= mirror;
  }
  return mirrored;
}

std::string limit_text(PathType type, PathType level, std::string_view source) {
  return fmt::format("{} is {} {}, {}", to_string(type), type <= level ? "within" : "beyond",
                     to_string(level), source);
}

struct PeerState {
  std::string_view name;  // nvidia-smi's
  NvmlP2p state;
  std::string_view meaning;
};

constexpr std::array kStatesOfPeers = {
    PeerState{"OK", NvmlP2p::kOk, "it is possible"},
    PeerState{"CNS", NvmlP2p::kDisabled, "the chipset does not support it"},
    PeerState{"GNS", NvmlP2p::kDisabled, "a GPU does not support it"},
    PeerState{"TNS", NvmlP2p::kDisabled, "the topology does not support it"},
    PeerState{"NS", NvmlP2p::kDisabled, "it is not supported"},
    PeerState{"DR", NvmlP2p::kDisabled, "a registry key of the driver disables it"},
    PeerState{"U", NvmlP2p::kUnknown, "it is not known"},
};

constexpr PeerState kSliced = {"", NvmlP2p::kDisabled,
                               "a GPU is divided into MIG devices, which have no peer-to-peer"};

// Source: MIG User Guide, application considerations. nullptr: the source does not tell.
const PeerState* peer_state(const HostTree& host, PartId gpu, PartId other) {
  for (const PartId one : {gpu, other}) {
    if (gpu != other && info_of<GpuInfo>(host[one]).is_sliced) return &kSliced;
  }
  const auto told = host.peer_states.find({gpu, other});
  if (told == host.peer_states.end()) return nullptr;
  const auto* const row = std::ranges::find(kStatesOfPeers, told->second, &PeerState::name);
  return row == kStatesOfPeers.end() ? nullptr : row;
}

}  // namespace

std::string_view to_string(RouteAnswer answer) {
  if (answer == RouteAnswer::kUnknown) return "unknown";
  return answer == RouteAnswer::kYes ? "yes" : "no";
}

NcclRoutes::NcclRoutes(const NcclPaths& paths, const NcclSettings& settings)
    : paths_(&paths), settings_(settings), names_(names_of_parts(paths.host())) {
  const HostTree& host = paths.host();
  is_amd_ = host.dialect == "2" || std::ranges::any_of(host.cross_links(), [](const CrossLink& l) {
              return l.kind == CrossLinkKind::kXgmi;
            });
  row_.assign(host.parts().size(), kNoRow);
  const std::vector<PartId> ends = paths.devices();
  for (const PartId end : ends) row_[end] = rows_++;
  for (const PartId from : ends) {
    for (const PartId to : ends) {
      const NcclPaths::Distance distance = paths.distance(from, to);
      routes_.push_back({distance.type, distance.gb_per_s});
    }
  }
  if (paths.numa_nodes().empty()) return;
  divert_without_peer_to_peer();
  mark_chip_to_chip();
  route_nics();
}

size_t NcclRoutes::slot(PartId from, PartId to) const {
  if (from >= row_.size() || to >= row_.size()) return kNoRow;
  if (row_[from] == kNoRow || row_[to] == kNoRow) return kNoRow;
  return row_[from] * rows_ + row_[to];
}

NcclRoute NcclRoutes::find(PartId from, PartId to) const {
  const size_t place = slot(from, to);
  if (place != kNoRow) return routes_[place];
  const NcclPaths::Distance distance = paths_->distance(from, to);
  return {distance.type, distance.gb_per_s};
}

NcclPath NcclRoutes::path(PartId from, PartId to) const {
  const NcclRoute route = find(from, to);
  NcclPath path = paths_->find(from, route.via == kNoPart ? to : route.via);
  if (route.via != kNoPart) {
    const NcclPath rest = paths_->find(route.via, to);
    path.hops.insert(path.hops.end(), rest.hops.begin(), rest.hops.end());
  }
  path.type = route.type;
  path.gb_per_s = route.gb_per_s;
  return path;
}

// The widest, of these the nearest.
std::vector<PartId> NcclRoutes::nearest(PartId from, const std::vector<PartId>& to) const {
  std::vector<PartId> found;
  NcclRoute best{PathType::kDis, 0};
  for (const PartId end : to) {
    const NcclRoute route = find(from, end);
    if (route.gb_per_s > best.gb_per_s ||
        (route.gb_per_s == best.gb_per_s && route.type < best.type)) {
      best = route;
      found.clear();
    }
    if (route.gb_per_s == best.gb_per_s && route.type == best.type) found.push_back(end);
  }
  return found;
}

PartId NcclRoutes::local_cpu(PartId gpu) const {
  const std::vector<PartId> cpus = nearest(gpu, paths_->numa_nodes());
  if (cpus.empty()) return kNoPart;
  return *std::ranges::min_element(cpus, {},
                                   [&](PartId cpu) { return paths_->distance(gpu, cpu).hops; });
}

NcclRoute NcclRoutes::through(PartId from, PartId via, PartId to) const {
  const NcclPaths::Distance first = paths_->distance(from, via);
  const NcclRoute second = find(via, to);
  const PathType farther = std::max(first.type, second.type);
  const bool is_p2c =
      farther == PathType::kPhb && std::min(first.type, second.type) == PathType::kC2c;
  return {is_p2c ? PathType::kP2c : farther, std::min(first.gb_per_s, second.gb_per_s), via};
}

void NcclRoutes::divert_without_peer_to_peer() {
  for (const PartId to : paths_->gpus()) {
    const PartId cpu = local_cpu(to);
    for (const PartId from : paths_->gpus()) {
      const PeerState* const told = peer_state(paths_->host(), from, to);
      const bool is_disabled = told != nullptr && told->state == NvmlP2p::kDisabled;
      if (cpu == kNoPart || (find(from, to).type <= p2p_level() && !is_disabled)) continue;
      routes_[slot(from, to)] = through(from, cpu, to);
    }
  }
}

void NcclRoutes::mark_chip_to_chip() {
  if (is_amd_) return;
  for (const PartId gpu : paths_->gpus()) {
    const PartId cpu = local_cpu(gpu);
    if (cpu == kNoPart || paths_->distance(gpu, cpu).type != PathType::kC2c) continue;
    for (const PartId port : nearest(gpu, paths_->ports())) {
      if (paths_->distance(port, cpu).type != PathType::kPhb) continue;
      for (NcclRoute* route : {&routes_[slot(gpu, port)], &routes_[slot(port, gpu)]})
        route->type = std::min(route->type, PathType::kP2c);
    }
  }
}

void NcclRoutes::route_nics() {
  for (const PartId port : paths_->ports()) {
    for (const PartId gpu : paths_->gpus()) {
      try_relay(gpu, port);
      divert_without_gpu_direct(gpu, port);
    }
  }
}

void NcclRoutes::try_relay(PartId gpu, PartId port) {
  const PartId peer = settings_.pxn_disable ? kNoPart : local_gpu(port);
  if (peer == kNoPart || peer == gpu) return;
  const NcclRoute now = find(gpu, port);
  const NcclRoute of_peer = find(peer, port);
  const PathType farthest = settings_.pxn_c2c && !is_amd_ ? PathType::kP2c : PathType::kPxb;
  const PathType avoided = is_amd_ ? PathType::kPxb : PathType::kPxn;
  const bool may_relay =
      of_peer.type <= farthest && find(peer, gpu).type <= PathType::kNvl &&
      (is_amd_ || gpu_direct(peer, port, Direction::kSend).answer != RouteAnswer::kNo);
  if (!may_relay || (of_peer.gb_per_s <= now.gb_per_s && now.type <= avoided)) return;
  routes_[slot(gpu, port)] = {
      PathType::kPxn, std::min(paths_->distance(gpu, peer).gb_per_s, of_peer.gb_per_s), peer};
}

void NcclRoutes::divert_without_gpu_direct(PartId gpu, PartId port) {
  if (find(gpu, port).type >= PathType::kPhb) return;
  if (gpu_direct(gpu, port, Direction::kReceive).answer != RouteAnswer::kNo) return;
  const PartId cpu = local_cpu(gpu);
  if (cpu == kNoPart) return;
  routes_[slot(port, gpu)] = through(port, cpu, gpu);
  routes_[slot(gpu, port)] = through(gpu, cpu, port);
}

// GPUs that share their ports begin at different ones.
std::vector<PartId> NcclRoutes::local_ports(PartId gpu) const {
  const std::vector<PartId> ports = nearest(gpu, paths_->ports());
  if (ports.empty()) return {};
  const size_t sharers = std::max<size_t>(1, nearest(ports[0], paths_->gpus()).size());
  const size_t each = (ports.size() + sharers - 1) / sharers;
  const auto number = info_of<GpuInfo>(paths_->host()[gpu]).number;
  size_t first = size_t(number ? std::max(*number, 0) : int(row_[gpu])) % sharers;
  if (std::has_single_bit(ports.size())) first = mirror_bits(first, ports.size());
  std::vector<PartId> taken;
  for (size_t i = 0; i < each; ++i) taken.push_back(ports[(first + i) % ports.size()]);
  return taken;
}

PartId NcclRoutes::local_gpu(PartId port) const {
  const std::vector<PartId> gpus = nearest(port, paths_->gpus());
  std::vector<std::vector<PartId>> taken;
  for (const PartId gpu : gpus) taken.push_back(local_ports(gpu));
  for (size_t channel = 0; channel < kMaxChannels; ++channel) {
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (!taken[i].empty() && taken[i][channel % taken[i].size()] == port) return gpus[i];
    }
  }
  return kNoPart;
}

PathType NcclRoutes::p2p_level() const {
  if (settings_.p2p_disable) return PathType::kLoc;
  if (settings_.p2p_level) return *settings_.p2p_level;
  const CpuVendor vendor =
      cpu_vendor(info_of<NumaNodeInfo>(paths_->host()[paths_->numa_nodes()[0]]));
  if (is_amd_) {
    const bool is_near =
        vendor == CpuVendor::kArm || vendor == CpuVendor::kIntel || vendor == CpuVendor::kZhaoxin;
    return is_near ? PathType::kPxb : PathType::kSys;
  }
  return vendor == CpuVendor::kAmd && paths_->gpus().size() <= 2 ? PathType::kSys : PathType::kPxb;
}

std::string NcclRoutes::p2p_level_source() const {
  if (settings_.p2p_disable) return "as NCCL_P2P_DISABLE=1 says";
  if (settings_.p2p_level) return "as NCCL_P2P_LEVEL says";
  if (is_amd_) return "RCCL's limit for peer-to-peer on this processor";
  if (p2p_level() == PathType::kSys)
    return "NCCL's limit for peer-to-peer on AMD processors with at most two GPUs";
  return "NCCL's limit for peer-to-peer";
}

RouteVerdict NcclRoutes::peer_to_peer(PartId gpu, PartId other) const {
  const PeerState* const told = peer_state(paths_->host(), gpu, other);
  if (told == nullptr && paths_->host().places_known)
    return peer_to_peer(gpu, other, NvmlP2p::kUnknown);
  if (told == nullptr) return {RouteAnswer::kUnknown, "the source does not record it"};
  const std::string rule = told == &kSliced
                               ? std::string(told->meaning)
                               : fmt::format("NVML reports {}: {}", told->name, told->meaning);
  if (told->state == NvmlP2p::kDisabled) return {RouteAnswer::kNo, rule};
  if (paths_->host().places_known) {
    RouteVerdict verdict = peer_to_peer(gpu, other, told->state);
    verdict.rule += "; " + rule;
    return verdict;
  }
  return {
      RouteAnswer::kUnknown,
      rule + "; NCCL also considers how the two are connected, which the source does not record"};
}

RouteVerdict NcclRoutes::peer_to_peer(PartId gpu, PartId other, NvmlP2p nvml) const {
  const PathType type = paths_->distance(gpu, other).type;
  if (type == PathType::kDis || paths_->numa_nodes().empty())
    return {type == PathType::kDis ? RouteAnswer::kNo : RouteAnswer::kUnknown,
            type == PathType::kDis ? "no path joins them" : "the source names no processor"};
  const PathType level = p2p_level();
  std::string rule = limit_text(type, level, p2p_level_source());
  if (type > level) return {RouteAnswer::kNo, rule + "; NCCL goes through host memory"};
  if (nvml == NvmlP2p::kOk || gpu == other || is_amd_) return {RouteAnswer::kYes, rule};
  if (nvml == NvmlP2p::kUnknown)
    return {RouteAnswer::kYes, rule + "; NVML must also report it for reads and writes"};
  rule += "; but NVML reports that it is disabled";
  if (type <= PathType::kNvb) rule += ", at which NCCL stops unless NCCL_IGNORE_DISABLED_P2P=1";
  return {RouteAnswer::kNo, rule};
}

RouteVerdict NcclRoutes::may_read(PartId gpu) const {
  if (settings_.gdr_read == false) return {RouteAnswer::kNo, "NCCL_NET_GDR_READ=0 forbids reads"};
  const auto capability = compute_capability_of(paths_->host()[gpu]);
  if (is_amd_ || settings_.gdr_read == true || (capability && *capability >= 80))
    return {RouteAnswer::kYes, ""};
  if (!capability)
    return {RouteAnswer::kUnknown,
            "the GPU's generation is unknown; before Ampere (sm_80) a NIC reads only from GPUs "
            "with NVLink"};
  const auto has_nvlink = [&](PartId other) {
    return other != gpu && find(gpu, other).type == PathType::kNvl;
  };
  if (paths_->gpus().size() == 1 || std::ranges::any_of(paths_->gpus(), has_nvlink))
    return {RouteAnswer::kYes, ""};
  return {RouteAnswer::kNo,
          fmt::format("before Ampere (sm_80; this is sm_{}) a NIC reads only from "
                      "GPUs with NVLink",
                      *capability)};
}

RouteVerdict NcclRoutes::within_gdr_level(PartId gpu, PartId port) const {
  NcclRoute route = find(gpu, port);
  const PartId relay = route.type == PathType::kPxn ? route.via : kNoPart;
  if (relay != kNoPart) route = find(relay, port);
  PathType level = settings_.gdr_c2c && !is_amd_ ? PathType::kP2c : PathType::kPxb;
  if (settings_.gdr_level) level = *settings_.gdr_level;
  const std::string rule =
      limit_text(
          route.type, level,
          settings_.gdr_level ? "as NCCL_NET_GDR_LEVEL says" : "the limit for GPUDirect RDMA") +
      (relay == kNoPart ? "" : fmt::format(" (of {}, which relays)", name(relay)));
  return {route.type <= level ? RouteAnswer::kYes : RouteAnswer::kNo, rule};
}

RouteVerdict NcclRoutes::gpu_direct(PartId gpu, PartId port, Direction direction) const {
  if (paths_->distance(gpu, port).type == PathType::kDis)
    return {RouteAnswer::kNo, "no path joins them"};
  const auto of_port = info_of<PortInfo>(paths_->host()[port]).gpu_direct;
  const auto of_gpu = info_of<GpuInfo>(paths_->host()[gpu]).gpu_direct;
  if (of_port == false)
    return {RouteAnswer::kNo, name(port) +
                                  " does not offer it (gdr=0): neither nvidia_peermem nor DMA-BUF "
                                  "was found, or it is not an RDMA device"};
  if (of_gpu == false) return {RouteAnswer::kNo, name(gpu) + " does not offer it (gdr=0)"};
  if (!of_gpu && is_consumer_gpu(paths_->host()[gpu]))
    return {RouteAnswer::kNo, std::string(kNoGpuDirectOnConsumerGpus)};
  const bool by_host = !(of_port && of_gpu) && paths_->host().gpu_direct && !is_amd_;
  if (const RouteVerdict files = by_host ? by_files(gpu, port) : RouteVerdict{};
      files.answer == RouteAnswer::kNo)
    return files;
  const RouteVerdict read =
      direction == Direction::kSend ? may_read(gpu) : RouteVerdict{RouteAnswer::kYes, ""};
  if (read.answer == RouteAnswer::kNo) return read;
  RouteVerdict verdict = within_gdr_level(gpu, port);
  if (verdict.answer == RouteAnswer::kNo) return verdict;
  if (read.answer == RouteAnswer::kUnknown) return read;
  if (of_port && of_gpu) return verdict;
  if (by_host) return by_files(gpu, port);
  return {RouteAnswer::kUnknown,
          verdict.rule + "; the source does not say whether both offer it (gdr)"};
}

// Without GPUDirect on the host, routes avoid it and their length proves nothing.
GpuDirectFacts NcclRoutes::gpu_direct_facts(PartId gpu, PartId port) const {
  GpuDirectFacts facts = paths_->host().gpu_direct.value_or(GpuDirectFacts{});
  if (!info_of<PortInfo>(paths_->host()[port]).has_guid()) {
    facts.too_far = name(port) + " is no RDMA device";
  } else if (is_consumer_gpu(paths_->host()[gpu])) {
    facts.too_far = kNoGpuDirectOnConsumerGpus;
  } else if (judge_gpu_direct(facts).method != GpuDirectMethod::kNone) {
    const RouteVerdict level = within_gdr_level(gpu, port);
    if (level.answer == RouteAnswer::kNo) facts.too_far = level.rule;
  }
  return facts;
}

RouteVerdict NcclRoutes::by_files(PartId gpu, PartId port) const {
  const GpuDirectVerdict verdict = judge_gpu_direct(gpu_direct_facts(gpu, port));
  if (verdict.method == GpuDirectMethod::kNone) return {RouteAnswer::kNo, verdict.why};
  return {verdict.is_on() ? RouteAnswer::kYes : RouteAnswer::kUnknown,
          within_gdr_level(gpu, port).rule + "; " + verdict.why};
}

RouteVerdict NcclRoutes::needs_flush(PartId gpu, PartId port) const {
  const auto capability = compute_capability_of(paths_->host()[gpu]);
  if (!capability || is_amd_) return {RouteAnswer::kUnknown, "the GPU's generation is unknown"};
  if (*capability < 90)
    return {RouteAnswer::kYes,
            fmt::format("before Hopper (sm_90; this is sm_{}) NCCL flushes what a "
                        "NIC wrote before the GPU reads it",
                        *capability)};
  const PartId cpu = local_cpu(gpu);
  const bool by_c2c = cpu != kNoPart && paths_->distance(gpu, cpu).type == PathType::kC2c;
  if (by_c2c && find(gpu, port).type <= PathType::kPxb)
    return {RouteAnswer::kYes,
            "data arrives over PCIe, its notification over the chip-to-chip link"};
  return {RouteAnswer::kNo, "NCCL needs none from Hopper (sm_90) on"};
}

}  // namespace gxp

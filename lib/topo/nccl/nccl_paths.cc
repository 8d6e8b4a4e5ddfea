#include "lib/topo/nccl/nccl_paths.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

constexpr uint32_t kNoEnd = ~uint32_t{0};
constexpr int kHopsBeforeRelay = 1;  // a GPU forwards only what its first neighbour sends

// The type of a path with one more link.
PathType type_after(PathType so_far, int hops, const NcclNode& from, const NcclLink& link,
                    const NcclNode& to) {
  PathType type = link.type;
  if (from.kind == NcclNodeKind::kPcie && to.kind == NcclNodeKind::kPcie) type = PathType::kPxb;
  const bool touches_cpu = from.kind == NcclNodeKind::kCpu || to.kind == NcclNodeKind::kCpu;
  if (link.type == PathType::kPix && touches_cpu) type = PathType::kPhb;
  if (from.kind == NcclNodeKind::kGpu && so_far == PathType::kNvl && type == PathType::kNvl &&
      hops == kHopsBeforeRelay)
    type = PathType::kNvb;
  return std::max(so_far, type);
}

bool may_pass(const NcclNode& from, const NcclLink& link, const NcclNode& to, int hops) {
  if (from.kind != NcclNodeKind::kGpu || hops == 0) return true;
  return link.type == PathType::kNvl && to.kind == NcclNodeKind::kGpu && hops <= kHopsBeforeRelay;
}

bool is_better(const NcclPaths::Distance& a, const NcclPaths::Distance& b) {
  if (a.type != b.type) return a.type < b.type;
  if (a.gb_per_s != b.gb_per_s) return a.gb_per_s > b.gb_per_s;
  return a.hops < b.hops;
}

}  // namespace

int NcclPath::limiting_hop() const {
  const auto narrowest = std::ranges::min_element(hops, {}, &PathHop::gb_per_s);
  return narrowest == hops.end() ? -1 : int(narrowest - hops.begin());
}

double NcclPath::physical_gb_per_s() const {
  if (hops.empty()) return 0;
  return std::ranges::min_element(hops, {}, &PathHop::physical_gb_per_s)->physical_gb_per_s;
}

NcclPaths::NcclPaths(const HostTree& host) : host_(&host), graph_(make_nccl_graph(host)) {
  const auto add_ends = [&](NcclNodeKind kind, std::vector<PartId>& parts) {
    for (const NcclNodeId node : graph_.all_of(kind)) {
      parts.push_back(graph_.nodes[node].part);
      end_nodes_.push_back(node);
    }
  };
  add_ends(NcclNodeKind::kGpu, gpus_);
  add_ends(NcclNodeKind::kPort, ports_);
  if (ports_.empty()) add_ends(NcclNodeKind::kNic, ports_);
  add_ends(NcclNodeKind::kCpu, numa_nodes_);
  if (end_nodes_.size() > kMaxEnds)
    fail(ErrorKind::kConfig,
         "find paths in host {}: it has {} GPUs, ports and NUMA nodes; at most {}", host.name,
         end_nodes_.size(), kMaxEnds);
  ends_.assign(host.parts().size(), kNoEnd);
  for (PartId part = 0; part < ends_.size(); ++part) {
    const auto end = std::ranges::find(end_nodes_, graph_.node_of[part]);
    if (end != end_nodes_.end()) ends_[part] = uint32_t(end - end_nodes_.begin());
  }
  for (const NcclNodeId node : end_nodes_) search(graph_.nodes[node].part);
}

// Leads from the base outwards; a path is kept from its far end to the base, so a step is a link
// taken backwards.
void NcclPaths::search(PartId base) {
  std::vector<Found> found(graph_.nodes.size());
  std::vector<NcclNodeId> now = {graph_.node_of[base]};
  found[now[0]].distance = {PathType::kLoc, kNcclLocalGbPerS, 0};
  while (!now.empty()) {
    std::vector<NcclNodeId> next;
    for (const NcclNodeId id : now) {
      const NcclNode& node = graph_.nodes[id];
      for (const NcclLink& link : node.links) {
        const NcclNode& far = graph_.nodes[link.to];
        const Found near = found[id];
        if (!may_pass(node, link, far, near.distance.hops)) continue;
        const Distance distance{type_after(near.distance.type, near.distance.hops, node, link, far),
                                std::min(near.distance.gb_per_s, link.gb_per_s),
                                near.distance.hops + 1};
        if (!is_better(distance, found[link.to].distance)) continue;
        steps_.push_back({{far.part, node.part, link.kind, link.gb_per_s, link.physical_gb_per_s},
                          near.first_step});
        found[link.to] = {distance, uint32_t(steps_.size() - 1)};
        if (std::ranges::find(next, link.to) == next.end()) next.push_back(link.to);
      }
    }
    now = std::move(next);
  }
  for (const NcclNodeId node : end_nodes_) found_.push_back(found[node]);
}

std::vector<PartId> NcclPaths::devices() const {
  std::vector<PartId> all = gpus_;
  all.insert(all.end(), ports_.begin(), ports_.end());
  return all;
}

uint32_t NcclPaths::end_of(PartId part) const { return part < ends_.size() ? ends_[part] : kNoEnd; }

const NcclPaths::Found* NcclPaths::found(PartId from, PartId to) const {
  const uint32_t start = end_of(from);
  const uint32_t end = end_of(to);
  if (start == kNoEnd || end == kNoEnd) return nullptr;
  return &found_[size_t{end} * end_nodes_.size() + start];
}

NcclPaths::Distance NcclPaths::distance(PartId from, PartId to) const {
  const Found* path = found(from, to);
  return path == nullptr ? Distance{} : path->distance;
}

NcclPath NcclPaths::find(PartId from, PartId to) const {
  const Found* path = found(from, to);
  if (path == nullptr) return {};
  NcclPath result{.type = path->distance.type, .gb_per_s = path->distance.gb_per_s};
  for (uint32_t step = path->first_step; step != kNoStep; step = steps_[step].next)
    result.hops.push_back(steps_[step].hop);
  return result;
}

}  // namespace gxp

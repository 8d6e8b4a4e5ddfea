#include "lib/topo/model/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool leads_on(const HardwareGraph& graph, VertexId vertex, VertexId from) {
  return vertex == from || forwards(graph.vertices()[vertex].kind);
}

// The width of the widest path to each vertex; 0: there is none.
std::vector<double> widths(const HardwareGraph& graph, VertexId from) {
  std::vector<double> width(graph.vertices().size(), 0);
  std::priority_queue<std::pair<double, VertexId>> open;
  width[from] = kInfinite;
  open.emplace(kInfinite, from);
  while (!open.empty()) {
    const auto [wide, vertex] = open.top();
    open.pop();
    if (wide < width[vertex] || !leads_on(graph, vertex, from)) continue;
    for (const LinkId id : graph.links_from(vertex)) {
      const Link& link = graph.links()[id];
      const double next = std::min(wide, link.gb_per_s);
      if (next <= width[link.to]) continue;
      width[link.to] = next;
      open.emplace(next, link.to);
    }
  }
  return width;
}

using Arrivals = std::vector<std::optional<LinkId>>;  // by vertex: the link that reaches it first

// Breadth first over the links of at least `narrowest`, in the order of their ids.
Arrivals arrivals(const HardwareGraph& graph, VertexId from, double narrowest) {
  Arrivals by(graph.vertices().size());
  std::vector<VertexId> open = {from};
  for (size_t i = 0; i < open.size(); ++i) {
    if (!leads_on(graph, open[i], from)) continue;
    for (const LinkId id : graph.links_from(open[i])) {
      const Link& link = graph.links()[id];
      if (link.gb_per_s < narrowest || link.to == from || by[link.to]) continue;
      by[link.to] = id;
      open.push_back(link.to);
    }
  }
  return by;
}

Path path_along(const HardwareGraph& graph, const Arrivals& by, VertexId from, VertexId to) {
  Path path{.gb_per_s = kInfinite, .exists = true};
  for (VertexId vertex = to; vertex != from; vertex = graph.links()[*by[vertex]].from) {
    const Link& link = graph.links()[*by[vertex]];
    path.links.push_back(*by[vertex]);
    path.gb_per_s = std::min(path.gb_per_s, link.gb_per_s);
    path.latency_s += link.latency_s;
  }
  std::ranges::reverse(path.links);
  return path;
}

}  // namespace

std::string_view to_string(VertexKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"NUMA node", "PCIe switch", "NVSwitch",
                                                      "GPU",       "NIC",         "PCIe device"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view to_string(LinkKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"PCIe", "NVLink", "C2C", "inter-NUMA",
                                                      "network"};
  return kNames[static_cast<size_t>(kind)];
}

bool forwards(VertexKind kind) {
  return kind != VertexKind::kGpu && kind != VertexKind::kNic && kind != VertexKind::kPcieDevice;
}

VertexId HardwareGraph::add_vertex(VertexKind kind, std::string name) {
  if (vertices_.size() == kMaxVertices) {
    fail(ErrorKind::kConfig, "add {} to the hardware graph: it has {} vertices, the limit", name,
         kMaxVertices);
  }
  vertices_.push_back({kind, std::move(name)});
  out_.emplace_back();
  return static_cast<VertexId>(vertices_.size() - 1);
}

void HardwareGraph::add_link(const Link& link) {
  GXP_ASSERT(link.from < vertices_.size() && link.to < vertices_.size() && link.gb_per_s > 0);
  if (links_.size() == kMaxLinks) {
    fail(ErrorKind::kConfig, "add a link to the hardware graph: it has {}, the limit", kMaxLinks);
  }
  out_[link.from].push_back(static_cast<LinkId>(links_.size()));
  links_.push_back(link);
}

void HardwareGraph::add_cable(const Link& link) {
  add_link(link);
  Link back = link;
  std::swap(back.from, back.to);
  add_link(back);
}

std::string HardwareGraph::name_of(LinkId link) const {
  return fmt::format("{} -> {}", vertices_[links_[link].from].name,
                     vertices_[links_[link].to].name);
}

// The widest path first fixes the width, then the fewest links are counted among the links that are
// as wide: searching for both at once would drop a narrow short prefix that a narrow link ahead
// makes as good as a wide long one.
std::vector<Path> find_paths(const HardwareGraph& graph, VertexId from,
                             std::span<const VertexId> targets) {
  const std::vector<double> width = widths(graph, from);
  std::map<double, Arrivals> by_width;
  std::vector<Path> paths;
  for (const VertexId to : targets) {
    paths.emplace_back();
    if (width[to] == 0) continue;
    auto [it, added] = by_width.try_emplace(width[to]);
    if (added) it->second = arrivals(graph, from, width[to]);
    paths.back() = path_along(graph, it->second, from, to);
  }
  return paths;
}

}  // namespace gxp

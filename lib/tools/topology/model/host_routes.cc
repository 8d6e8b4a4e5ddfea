#include "lib/tools/topology/model/host_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

PathType path_type_of(const HardwareGraph& graph, std::span<const LinkId> links) {
  PathType type = PathType::kNvl;
  int switches = 0;
  for (const LinkId id : links) {
    const Link& link = graph.links()[id];
    if (link.kind == LinkKind::kInterNuma) return PathType::kSys;
    if (link.kind != LinkKind::kPcie) continue;
    const VertexKind to = graph.vertices()[link.to].kind;
    switches += to == VertexKind::kPcieSwitch ? 1 : 0;
    const PathType of_switches = switches > 1 ? PathType::kPxb : PathType::kPix;
    type = std::max(type, to == VertexKind::kNumaNode ? PathType::kPhb : of_switches);
  }
  return type;
}

}  // namespace

HostRoutes::HostRoutes(int gpus, int nics) : gpus_(gpus), nics_(nics) {
  GXP_ASSERT(gpus > 0 && nics >= 0);
  routes_.resize(size_t(places()) * size_t(places()));
  for (int gpu = 0; gpu < gpus; ++gpu) names_.push_back(fmt::format("GPU {}", gpu));
  for (int nic = 0; nic < nics; ++nic) names_.push_back(fmt::format("NIC {}", nic));
}

uint32_t HostRoutes::add_link(std::string name, double gb_per_s) {
  GXP_ASSERT(gb_per_s > 0);
  links_.push_back({std::move(name), gb_per_s});
  return uint32_t(links_.size() - 1);
}

void HostRoutes::set(int from, int to, HostRoute route) {
  for (const uint32_t link : route.links) GXP_ASSERT(link < links_.size());
  route.exists = true;
  routes_[size_t(from) * size_t(places()) + size_t(to)] = std::move(route);
}

void HostRoutes::set_name(int place, std::string name) { names_[size_t(place)] = std::move(name); }

HostRoutes host_routes(const HostTopology& host) {
  const HardwareGraph& graph = host.graph;
  HostRoutes routes(int(host.gpus.size()), int(host.nics.size()));
  for (LinkId id = 0; id < graph.links().size(); ++id) {
    routes.add_link(graph.name_of(id), graph.links()[id].gb_per_s);
  }
  std::vector<VertexId> places = host.gpus;
  std::vector<uint32_t> network;  // of each NIC that knows its speed: out, and behind it in
  constexpr uint32_t kNone = ~uint32_t{0};
  for (const Nic& nic : host.nics) {
    places.push_back(nic.vertex);
    network.push_back(kNone);
    if (nic.gb_per_s <= 0) continue;
    const std::string& name = graph.vertices()[nic.vertex].name;
    network.back() = routes.add_link(name + " -> network", nic.gb_per_s);
    routes.add_link("network -> " + name, nic.gb_per_s);
  }
  const auto network_of = [&](size_t place) {
    return place < host.gpus.size() ? kNone : network[place - host.gpus.size()];
  };
  for (size_t from = 0; from < places.size(); ++from) {
    const std::vector<Path> paths = find_paths(graph, places[from], places);
    for (size_t to = 0; to < places.size(); ++to) {
      if (from == to || !paths[to].exists) continue;
      HostRoute route{.links = {}, .type = path_type_of(graph, paths[to].links)};
      if (network_of(from) != kNone) route.links.push_back(network_of(from) + 1);
      route.links.insert(route.links.end(), paths[to].links.begin(), paths[to].links.end());
      if (network_of(to) != kNone) route.links.push_back(network_of(to));
      routes.set(int(from), int(to), std::move(route));
    }
  }
  return routes;
}

}  // namespace gxp

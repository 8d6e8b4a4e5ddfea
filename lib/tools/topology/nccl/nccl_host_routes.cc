#include "lib/tools/topology/nccl/nccl_host_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

class RouteReader {
 public:
  RouteReader(const NcclPaths& paths, const NcclRoutes& routes)
      : names_(names_of_parts(paths.host())),
        parts_(places_of_plan(paths)),
        found_(routes),
        routes_(int(paths.gpus().size()), int(paths.ports().size())) {}

  [[nodiscard]] HostRoutes read() && {
    for (size_t from = 0; from < parts_.size(); ++from) {
      routes_.set_name(int(from), names_[parts_[from]]);
      for (size_t to = 0; to < parts_.size(); ++to) {
        const bool between_nics = std::min(from, to) >= size_t(routes_.gpus());
        if (from != to && !between_nics) read(int(from), int(to));
      }
    }
    return std::move(routes_);
  }

 private:
  void read(int from, int to) {
    const NcclPath path = found_.path(parts_[size_t(from)], parts_[size_t(to)]);
    if (path.type >= PathType::kDis || path.hops.empty()) return;
    HostRoute route{.links = {}, .type = path.type};
    for (const PathHop& hop : path.hops) {
      const uint32_t link = link_of(hop);
      if (std::ranges::find(route.links, link) == route.links.end()) route.links.push_back(link);
    }
    routes_.set(from, to, std::move(route));
  }
  uint32_t link_of(const PathHop& hop) {
    const auto [it, added] = links_.try_emplace({hop.from, hop.to, hop.kind}, 0);
    if (added) {
      const std::string name = fmt::format("{} -> {}", name_of(hop.from), name_of(hop.to));
      it->second = routes_.add_link(name, hop.gb_per_s);
    }
    return it->second;
  }
  [[nodiscard]] std::string name_of(PartId part) const {
    return part == kNoPart ? "NVSwitch" : names_[part];
  }

  std::vector<std::string> names_;
  std::vector<PartId> parts_;
  const NcclRoutes& found_;
  HostRoutes routes_;
  std::map<std::tuple<PartId, PartId, LinkKind>, uint32_t> links_;
};

}  // namespace

std::vector<PartId> places_of_plan(const NcclPaths& paths) {
  std::vector<PartId> places = paths.gpus();
  sort_by_number(paths.host(), places);
  places.insert(places.end(), paths.ports().begin(), paths.ports().end());
  return places;
}

HostRoutes nccl_host_routes(const NcclPaths& paths, const NcclRoutes& routes) {
  if (paths.gpus().empty()) {
    fail(ErrorKind::kConfig, "plan for {}: it has no GPU", paths.host().name);
  }
  return RouteReader(paths, routes).read();
}

}  // namespace gxp

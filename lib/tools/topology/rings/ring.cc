#include "lib/tools/topology/rings/ring.h"

#include <utility>

namespace gxp {
namespace {

// Calls act(route) for each hop of the ring.
template <class Act>
void for_each_hop(const HostRoutes& routes, const Ring& ring, const Act& act) {
  std::vector<int> places = ring.gpus;
  if (ring.nic >= 0) places.insert(places.begin(), routes.place_of_nic(ring.nic));
  for (size_t i = 0; places.size() > 1 && i < places.size(); ++i) {
    act(routes.route(places[i], places[(i + 1) % places.size()]));
  }
}

}  // namespace

std::vector<int> starts_of_rings(const HostRoutes& routes, bool through_nics) {
  if (!through_nics) return {0};
  std::vector<int> starts;
  for (int nic = 0; nic < routes.nics(); ++nic) starts.push_back(routes.place_of_nic(nic));
  return starts;
}

Ring make_ring(const HostRoutes& routes, int start, std::vector<int> gpus) {
  return {.nic = start < routes.gpus() ? -1 : start - routes.gpus(), .gpus = std::move(gpus)};
}

Ring reversed(Ring ring) {
  std::ranges::reverse(ring.gpus);
  // GPU 0 stays in front.
  if (ring.nic < 0) std::rotate(ring.gpus.begin(), ring.gpus.end() - 1, ring.gpus.end());
  return ring;
}

std::vector<uint32_t> links_of_ring(const HostRoutes& routes, const Ring& ring) {
  std::vector<uint32_t> links;
  for_each_hop(routes, ring, [&](const HostRoute& route) {
    links.insert(links.end(), route.links.begin(), route.links.end());
  });
  return links;
}

bool has_routes(const HostRoutes& routes, const Ring& ring) {
  bool all = true;
  for_each_hop(routes, ring, [&](const HostRoute& route) { all &= route.exists; });
  return all;
}

}  // namespace gxp

#include "lib/tools/topology/model/host.h"

#include <tuple>

namespace gxp {
std::vector<int> nearest_nics(const HostTopology& host) {
  std::vector<int> nearest;
  if (host.nics.empty()) return nearest;
  std::vector<int> users(host.nics.size(), 0);
  std::vector<VertexId> nics;
  for (const Nic& nic : host.nics) nics.push_back(nic.vertex);
  for (const VertexId gpu : host.gpus) {
    const std::vector<Path> paths = find_paths(host.graph, gpu, nics);
    const auto rank_of = [&](size_t nic) {
      const Path& path = paths[nic];
      return std::tuple(!path.exists, -path.gb_per_s, path.links.size(), users[nic]);
    };
    size_t best = 0;
    for (size_t nic = 1; nic < host.nics.size(); ++nic) {
      if (rank_of(nic) < rank_of(best)) best = nic;
    }
    ++users[best];
    nearest.push_back(int(best));
  }
  return nearest;
}

}  // namespace gxp

#include "lib/tools/planner/cluster_links.h"

#include <algorithm>

namespace gxp {
namespace {

double narrowest(const Cluster& cluster, int from, int to) {
  Cluster::Route route{};
  const size_t count = cluster.route(from, to, route);
  double gb_per_s = 0;
  for (size_t i = 0; i < count; ++i) {
    const double rate = cluster.links()[route[i]].gb_per_s;
    gb_per_s = i == 0 ? rate : std::min(gb_per_s, rate);
  }
  return gb_per_s * 1e9;
}

}  // namespace

Links links_of(const Cluster& cluster) {
  const HostGroup& group = cluster.description().groups.front();
  const int hosts = cluster.hosts();
  int gpus = 1;  // of the first host
  while (gpus < cluster.gpus() && cluster.host_of(gpus) == 0) ++gpus;
  Links links{.gpus_per_domain = gpus, .host_bytes_per_s = 25e9};
  if (gpus > 1) links.nvlink_bytes_per_s = narrowest(cluster, 0, 1);
  if (hosts > 1) {
    const double nics = double(std::max<size_t>(group.inside.nics.size(), 1));
    links.network_bytes_per_s = narrowest(cluster, 0, gpus) * std::min(1.0, nics / gpus) /
                                cluster.description().network.oversubscription;
  }
  return links;
}

}  // namespace gxp

#include "lib/tools/topology/rings/plan_graphs.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/tools/topology/nccl/nccl_host_routes.h"
#include "lib/tools/topology/read/channel_graphs.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

constexpr double kMostOfChannel = 60;  // GB/s, NCCL 2.30's search for sm90 (graph/search.cc)
constexpr int kMostNcclChannels = 64;  // NCCL's
constexpr int kRing = 4;               // patterns, as in the file
constexpr int kTree = 3;               // all traffic with NICs at one GPU

int copies_at(const RingPlan& plan, double gb_per_s) {
  double copies = 0;
  for (const RingChannel& channel : plan.channels) {
    copies += std::floor(channel.gb_per_s / gb_per_s * (1 + 1e-9));
  }
  return int(std::min(copies, 1e6));
}

// The rate at which equal channels carry the most, the highest of these.
double equal_rate(const RingPlan& plan) {
  double best = 0;
  for (const RingChannel& channel : plan.channels) {
    for (int parts = 1; parts <= kMostNcclChannels; ++parts) {
      const double rate = channel.gb_per_s / parts;
      const int copies = copies_at(plan, rate);
      if (rate > kMostOfChannel || copies > kMostNcclChannels) continue;
      const double sum = rate * copies;
      const double best_sum = best == 0 ? 0 : best * copies_at(plan, best);
      const bool is_more = sum > best_sum * (1 + 1e-9);
      if (is_more || (sum > best_sum * (1 - 1e-9) && rate > best)) best = rate;
    }
  }
  if (best > 0) return best;
  return plan.gb_per_s /
         kMostNcclChannels;  // so fast that even the most channels are above the limit
}

class GraphWriter {
 public:
  GraphWriter(const HostRoutes& routes, const RingPlan& plan, const HostTree& tree)
      : routes_(routes), plan_(plan), tree_(tree), places_(places_of_plan(NcclPaths(tree))) {}

  [[nodiscard]] ChannelGraph graph(int id, int pattern, double sum_gb_per_s) const {
    const double rate = equal_rate(plan_);
    ChannelGraph graph{.id = id, .pattern = pattern, .cross_nic = 0};
    PathType inside = PathType::kLoc;
    PathType outside = plan_.channels[0].ring.nic < 0 ? PathType::kPix : PathType::kLoc;
    bool same = true;
    for (const RingChannel& channel : plan_.channels) {
      same &= channel.ring.gpus == plan_.channels[0].ring.gpus;
      note_types(channel.ring, inside, outside);
      const int copies = int(std::floor(channel.gb_per_s / rate * (1 + 1e-9)));
      graph.channels.insert(graph.channels.end(), size_t(copies), channel_of(channel.ring));
    }
    // A graph carries what its channels do together: no more than these, and no more than planned.
    const double speed = std::min(rate, sum_gb_per_s / double(graph.channels.size()));
    graph.channel_count = int(graph.channels.size());
    graph.speed_intra = graph.speed_inter = speed;
    graph.latency_inter = 0;
    graph.type_intra = to_string(inside);
    graph.type_inter = to_string(outside);
    graph.same_channels = same;
    return graph;
  }

 private:
  [[nodiscard]] ChannelDevice device_of(int place) const {
    const PartId part = places_[size_t(place)];
    const bool is_gpu = place < routes_.gpus();
    const std::optional<int> number =
        is_gpu ? info_of<GpuInfo>(tree_[part]).number : info_of<PortInfo>(tree_[part]).number;
    if (!number) {
      fail(ErrorKind::kConfig,
           "write NCCL's graph of {}: {} has no number (dev), which the file needs", tree_.name,
           routes_.name(place));
    }
    return {.kind = is_gpu ? ChannelDevice::Kind::kGpu : ChannelDevice::Kind::kNet, .dev = *number};
  }
  [[nodiscard]] Channel channel_of(const Ring& ring) const {
    Channel channel;
    for (const int gpu : ring.gpus) channel.devices.push_back(device_of(gpu));
    if (ring.nic < 0) return channel;
    const ChannelDevice net = device_of(routes_.place_of_nic(ring.nic));
    channel.devices.insert(channel.devices.begin(), net);
    channel.devices.push_back(net);
    return channel;
  }
  void note_types(const Ring& ring, PathType& inside, PathType& outside) const {
    for (size_t i = 0; i + 1 < ring.gpus.size(); ++i) {
      inside = std::max(inside, routes_.route(ring.gpus[i], ring.gpus[i + 1]).type);
    }
    if (ring.nic < 0) {
      inside = std::max(inside, routes_.route(ring.gpus.back(), ring.gpus[0]).type);
      return;
    }
    const int nic = routes_.place_of_nic(ring.nic);
    outside = std::max({outside, routes_.route(nic, ring.gpus[0]).type,
                        routes_.route(ring.gpus.back(), nic).type});
  }

  const HostRoutes& routes_;
  const RingPlan& plan_;
  const HostTree& tree_;
  std::vector<PartId> places_;
};

}  // namespace

ChannelGraphs channel_graphs_of(const ClusterPlan& plan, const HostTree& tree) {
  if (!(plan.rings[0].gb_per_s > 0)) {
    fail(ErrorKind::kConfig,
         "write NCCL's graph of {}: one GPU has no ring, and NCCL needs no graph for it; --hosts 2 "
         "plans the rings of several such hosts through their ports",
         tree.name);
  }
  const GraphWriter writer(plan.kinds[0], plan.rings[0], tree);
  ChannelGraphs graphs{.name = tree.name};
  graphs.graphs.push_back(writer.graph(0, kRing, plan.ring_gb_per_s));
  graphs.graphs.push_back(writer.graph(1, kTree, plan.tree_gb_per_s));
  return graphs;
}

}  // namespace gxp

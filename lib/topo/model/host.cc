#include "lib/topo/model/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "lib/base/error.h"

namespace gxp {
namespace {

class HostBuilder {
 public:
  explicit HostBuilder(const HostDescription& description) : description_(description) {}

  HostTopology build() {
    add_numa_nodes();
    add_switches();
    for (int i = 0; i < description_.nics; ++i) add_nic(i);
    for (int i = 0; i < description_.gpus; ++i) add_gpu(i);
    add_nvswitch();
    return std::move(host_);
  }

 private:
  VertexId add(VertexKind kind, int index) {
    return host_.graph.add_vertex(kind, fmt::format("{} {}", to_string(kind), index));
  }

  void join(VertexId a, VertexId b, LinkKind kind, double gb_per_s, double latency_s) {
    host_.graph.add_cable(
        {.from = a, .to = b, .kind = kind, .gb_per_s = gb_per_s, .latency_s = latency_s});
  }

  void join_pcie(VertexId device, VertexId above) {
    join(device, above, LinkKind::kPcie, description_.pcie_gb_per_s, description_.latencies.pcie_s);
  }

  void add_numa_nodes() {
    for (int i = 0; i < description_.numa_nodes; ++i) {
      numa_nodes_.push_back(add(VertexKind::kNumaNode, i));
      for (int j = 0; j < i; ++j) {
        join(numa_nodes_[size_t(j)], numa_nodes_[size_t(i)], LinkKind::kInterNuma,
             description_.inter_numa_gb_per_s, description_.latencies.inter_numa_s);
      }
    }
  }

  void add_switches() {
    const int count = std::max(description_.nics, description_.numa_nodes);
    for (int i = 0; i < count; ++i) {
      switches_.push_back(add(VertexKind::kPcieSwitch, i));
      const int node = group_of(i, count, description_.numa_nodes);
      join_pcie(switches_.back(), numa_nodes_[size_t(node)]);
    }
  }

  [[nodiscard]] VertexId switch_of(int index, int count) const {
    return switches_[size_t(group_of(index, count, int(switches_.size())))];
  }

  void add_nic(int index) {
    host_.nics.push_back({add(VertexKind::kNic, index), 0});
    join_pcie(host_.nics.back().vertex, switch_of(index, description_.nics));
  }

  void add_gpu(int index) {
    host_.gpus.push_back(add(VertexKind::kGpu, index));
    join_pcie(host_.gpus.back(), switch_of(index, description_.gpus));
  }

  void add_nvswitch() {
    if (description_.nvlink_gb_per_s == 0) return;
    const VertexId nvswitch = host_.graph.add_vertex(VertexKind::kNvSwitch, "NVSwitch");
    for (const VertexId gpu : host_.gpus) {
      join(gpu, nvswitch, LinkKind::kNvLink, description_.nvlink_gb_per_s,
           description_.latencies.nvlink_s);
    }
  }

  const HostDescription& description_;
  HostTopology host_;
  std::vector<VertexId> numa_nodes_;
  std::vector<VertexId> switches_;
};

}  // namespace

std::vector<VertexId> HostTopology::nic_vertices() const {
  std::vector<VertexId> vertices;
  for (const Nic& nic : nics) vertices.push_back(nic.vertex);
  return vertices;
}

HostTopology make_host(const HostDescription& description) {
  return HostBuilder(description).build();
}

std::vector<int> nearest_nics(const HostTopology& host) {
  std::vector<int> nearest;
  if (host.nics.empty()) return nearest;
  std::vector<int> users(host.nics.size(), 0);
  for (const VertexId gpu : host.gpus) {
    const std::vector<Path> paths = find_paths(host.graph, gpu, host.nic_vertices());
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

// A cluster: groups of equal hosts, the network between them, and the links that a message takes
// from one GPU to another. A GPU is a place for a rank; a host without GPUs has a place for each
// rank.
//   Numbers  hosts and GPUs are numbered through the cluster, in the order of the groups. A link is
//            one direction of a cable.
//   Routes   within a host the path that find_paths gives; between hosts from the GPU to its NIC,
//            over the network, and from the other GPU's NIC to that GPU. A GPU uses one NIC.
//   Network  one switch that never blocks, or a fat tree of two stages: leaf switches, each with a
//            trunk to a spine that never blocks. A trunk carries, each way, what the leaf's NICs
//            carry, divided by the oversubscription; its cables are taken to be evenly used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/tools/topology/model/host.h"

namespace gxp {

struct HostGroup {
  std::string name = "host";
  int hosts = 1;
  HostTopology inside{};
  std::vector<int> nic_of_gpu{};  // empty: the nearest (host.h)
};

struct NetworkDescription {
  double latency_s = 0;             // of each cable, with the switch at its end
  int hosts_per_leaf = 0;           // 0: one switch, or
  std::vector<int> leaf_of_host{};  // of each host, from 0; each leaf has a host (check_leaves)
  bool rails = false;               // NIC i of the hosts of a leaf has a leaf switch of its own
  double oversubscription = 1;
};

// Nothing if there are no leaves.
std::optional<int> leaf_of_host(const NetworkDescription& network, int64_t host);
// kConfig: network.leaf_of_host does not fit so many hosts, or leaves out a leaf. `name` is the
// cluster's, for messages.
void check_leaves(const NetworkDescription& network, int64_t hosts, const std::string& name);

struct ClusterDescription {
  std::string name = "cluster";  // for messages
  std::vector<HostGroup> groups{};
  NetworkDescription network{};
  double message_overhead_s = 0;  // of a rank, for each message that it sends or receives
  double fold_gb_per_s = 0;       // at which one rank reduces arriving data, or copies
};

struct ClusterLink {
  double gb_per_s = 0;
  double latency_s = 0;
  // All routes that use this link use the same link before it, or start with it at the same GPU; so
  // messages reach it in the order in which they reached that link or left that GPU.
  bool follows = false;
};

class Cluster {
 public:
  static constexpr int kMaxGpusPerHost = 256;
  static constexpr int64_t kMaxHosts = 1 << 16;
  static constexpr int64_t kMaxGpus = 1 << 20;
  static constexpr int64_t kMaxLinks = 1 << 24;
  static constexpr size_t kMaxRoute = 20;  // links

  using Route = std::array<uint32_t, kMaxRoute>;

  // kConfig: a limit is exceeded, or a GPU cannot reach another or its NIC.
  explicit Cluster(ClusterDescription description);

  [[nodiscard]] const ClusterDescription& description() const { return description_; }
  [[nodiscard]] int hosts() const { return hosts_; }
  [[nodiscard]] int gpus() const { return gpus_; }
  [[nodiscard]] int host_of(int gpu) const;
  // The inside of this host, and of all hosts of its group.
  [[nodiscard]] const HostTopology& inside_of_host(int host) const {
    return description_.groups[group_of_host_[static_cast<size_t>(host)]].inside;
  }
  [[nodiscard]] std::span<const ClusterLink> links() const { return links_; }
  // "h100 3: GPU 0 -> NVSwitch", "h100 3: mlx5_0 -> network", "leaf 7 -> spine".
  [[nodiscard]] std::string name_of(uint32_t link) const;
  // The number of links from one GPU to another; the first entries of `route` are they. Cost: a
  // copy.
  size_t route(int from, int to, Route& route) const;

 private:
  using Hops = std::vector<LinkId>;

  // The common part of the hosts of one group; link ids count from the host's first link. After
  // the links of the graph come two for each NIC, to and from the network.
  struct Group {
    int first_host = 0;
    int first_gpu = 0;
    int gpus = 0;  // of one host
    uint32_t first_link = 0;
    uint32_t links = 0;  // of one host
    std::vector<int> nic_of_gpu;
    std::vector<Hops> to_gpu{};  // [from * gpus + to]
    std::vector<Hops> to_nic{};  // [gpu], to the NIC that it uses
    std::vector<Hops> from_nic{};
    uint32_t first_nic_link = 0;
  };
  struct GpuLocation {
    const Group* group;
    int host;  // in the group
    int gpu;   // in the host
  };

  void add_group(const HostGroup& description);
  void choose_nics(const HostGroup& description, Group& group) const;
  [[nodiscard]] std::vector<Hops> hops_between(const HostGroup& description, VertexId from,
                                               std::span<const VertexId> targets) const;
  void find_routes(const HostGroup& description, Group& group) const;
  void add_links(const HostGroup& description);
  void add_leaves();
  void mark_followers(const Group& group);
  [[nodiscard]] GpuLocation location_of(int gpu) const;
  [[nodiscard]] int leaf_of(const GpuLocation& location) const;
  [[nodiscard]] int leaf_of(int host, int nic) const;
  [[nodiscard]] bool has_network() const { return hosts_ > 1; }
  [[nodiscard]] bool has_leaves() const {
    return leaf_of_host(description_.network, 0).has_value();
  }

  ClusterDescription description_;
  std::vector<Group> groups_;
  std::vector<ClusterLink> links_;
  std::vector<uint16_t> group_of_host_;
  int hosts_ = 0;
  int gpus_ = 0;
  int rails_ = 1;
  uint32_t first_trunk_ = 0;  // two for each leaf, to and from the spine
};

// Rank r on GPU r; rank_plan.h may know better. kConfig if there are more ranks than GPUs.
std::vector<int> place_ranks(const Cluster& cluster, int ranks);
// The host of each rank, numbered from 0 in the order in which the ranks name them.
std::vector<int> hosts_of_ranks(const Cluster& cluster, std::span<const int> gpu_of_rank);

}  // namespace gxp

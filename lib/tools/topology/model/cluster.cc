#include "lib/tools/topology/model/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/numbering.h"

namespace gxp {
namespace {

constexpr uint32_t kUnseen = ~uint32_t{0};
constexpr uint32_t kSeveral = ~uint32_t{1};

// The predecessors of each link of a host on the routes through the host.
class Predecessors {
 public:
  explicit Predecessors(size_t links) : before_(links, kUnseen) {}

  void walk(uint32_t origin, std::span<const LinkId> hops) {
    uint32_t previous = origin;
    for (const LinkId hop : hops) {
      if (before_[hop] == kUnseen) before_[hop] = previous;
      if (before_[hop] != previous) before_[hop] = kSeveral;
      previous = hop;
    }
  }
  void add_several(uint32_t link) { before_[link] = kSeveral; }
  [[nodiscard]] bool has_one(uint32_t link) const { return before_[link] < kSeveral; }

 private:
  std::vector<uint32_t> before_;
};

}  // namespace

void check_leaves(const NetworkDescription& network, int64_t hosts, const std::string& name) {
  const std::vector<int>& leaves = network.leaf_of_host;
  if (leaves.empty()) return;
  if (int64_t(leaves.size()) != hosts) {
    fail(ErrorKind::kConfig, "{}: leaf_of_host names {} hosts; there are {}", name, leaves.size(),
         hosts);
  }
  std::vector<bool> used(leaves.size(), false);
  for (const int leaf : leaves) {
    if (leaf >= 0 && leaf < hosts) used[size_t(leaf)] = true;
  }
  const int highest = *std::ranges::max_element(leaves);
  for (int leaf = 0; leaf <= highest; ++leaf) {
    if (leaf < hosts && used[size_t(leaf)]) continue;
    fail(ErrorKind::kConfig,
         "{}: leaf_of_host names a leaf {}, but no host of leaf {}; number leaves from 0", name,
         highest, leaf);
  }
}

std::optional<int> leaf_of_host(const NetworkDescription& network, int64_t host) {
  if (!network.leaf_of_host.empty()) return network.leaf_of_host[size_t(host)];
  if (network.hosts_per_leaf == 0) return std::nullopt;
  return int(host / network.hosts_per_leaf);
}

Cluster::Cluster(ClusterDescription description) : description_(std::move(description)) {
  const std::string& name = description_.name;
  int64_t hosts = 0;
  int64_t gpus = 0;
  for (const HostGroup& group : description_.groups) {
    const size_t inside = group.inside.gpus.size();
    if (inside < 1 || inside > size_t{kMaxGpusPerHost}) {
      fail(ErrorKind::kConfig, "{}: a host of '{}' has {} GPUs; from 1 to {} are possible", name,
           group.name, inside, kMaxGpusPerHost);
    }
    hosts += group.hosts;
    gpus += int64_t{group.hosts} * int64_t(inside);
    rails_ = std::max(rails_, int(group.inside.nics.size()));
  }
  if (hosts < 1 || hosts > kMaxHosts || gpus > kMaxGpus) {
    fail(ErrorKind::kConfig,
         "{}: {} hosts with {} GPUs; from 1 to {} hosts with up to {} are possible", name, hosts,
         gpus, kMaxHosts, kMaxGpus);
  }
  hosts_ = int(hosts);
  groups_.reserve(description_.groups.size());
  for (const HostGroup& group : description_.groups) add_group(group);
  add_leaves();
}

void Cluster::add_group(const HostGroup& description) {
  const size_t graph_links = description.inside.graph.links().size();
  Group group{.first_host = int(group_of_host_.size()),
              .first_gpu = gpus_,
              .gpus = int(description.inside.gpus.size()),
              .first_link = uint32_t(links_.size()),
              .links = uint32_t(graph_links + 2 * description.inside.nics.size()),
              .nic_of_gpu = description.nic_of_gpu,
              .first_nic_link = uint32_t(graph_links)};
  const int64_t links = int64_t(links_.size()) + int64_t{description.hosts} * group.links;
  if (links > kMaxLinks) {
    fail(ErrorKind::kConfig, "{}: {} links up to the hosts of '{}'; up to {} are possible",
         description_.name, links, description.name, kMaxLinks);
  }
  if (has_network()) choose_nics(description, group);
  find_routes(description, group);
  add_links(description);
  mark_followers(group);
  gpus_ += description.hosts * group.gpus;
  group_of_host_.insert(group_of_host_.end(), size_t(description.hosts), uint16_t(groups_.size()));
  groups_.push_back(std::move(group));
}

void Cluster::choose_nics(const HostGroup& description, Group& group) const {
  const HostTopology& inside = description.inside;
  if (group.nic_of_gpu.empty()) group.nic_of_gpu = nearest_nics(inside);
  if (group.nic_of_gpu.size() != inside.gpus.size()) {
    fail(ErrorKind::kConfig,
         "{}: hosts '{}' have {} GPUs and {} NICs, and nic_of_gpu names {}; each GPU needs a NIC",
         description_.name, description.name, inside.gpus.size(), inside.nics.size(),
         group.nic_of_gpu.size());
  }
  for (const int nic : group.nic_of_gpu) {
    if (nic < 0 || size_t(nic) >= inside.nics.size()) {
      fail(ErrorKind::kConfig, "{}: nic_of_gpu of hosts '{}' names NIC {}; they have {}",
           description_.name, description.name, nic, inside.nics.size());
    }
    if (inside.nics[size_t(nic)].gb_per_s > 0) continue;
    fail(ErrorKind::kConfig,
         "{}: the bandwidth of NIC {} of hosts '{}' is unknown; give nic_gb_per_s",
         description_.name, nic, description.name);
  }
}

std::vector<Cluster::Hops> Cluster::hops_between(const HostGroup& description, VertexId from,
                                                 std::span<const VertexId> targets) const {
  constexpr size_t kMost = (kMaxRoute - 4) / 2;  // the other host's and the network's come behind
  const HardwareGraph& graph = description.inside.graph;
  std::vector<Hops> hops;
  for (Path& path : find_paths(graph, from, targets)) {
    if (!path.exists || path.links.size() > kMost) {
      fail(ErrorKind::kConfig,
           "{}: in hosts '{}' the path from {} to {} has {} links; each GPU needs paths of at most "
           "{} links to and from the other GPUs and its NIC",
           description_.name, description.name, graph.vertices()[from].name,
           graph.vertices()[targets[hops.size()]].name,
           path.exists ? std::to_string(path.links.size()) : "no", kMost);
    }
    hops.push_back(std::move(path.links));
  }
  return hops;
}

void Cluster::find_routes(const HostGroup& description, Group& group) const {
  const HostTopology& inside = description.inside;
  for (size_t i = 0; i < inside.gpus.size(); ++i) {
    const VertexId gpu = inside.gpus[i];
    std::ranges::move(hops_between(description, gpu, inside.gpus),
                      std::back_inserter(group.to_gpu));
    if (!has_network()) continue;
    const VertexId nic = inside.nics[size_t(group.nic_of_gpu[i])].vertex;
    group.to_nic.push_back(std::move(hops_between(description, gpu, {&nic, 1})[0]));
    group.from_nic.push_back(std::move(hops_between(description, nic, {&gpu, 1})[0]));
  }
}

void Cluster::add_links(const HostGroup& description) {
  std::vector<ClusterLink> links;
  for (const Link& link : description.inside.graph.links()) {
    links.push_back({link.gb_per_s, link.latency_s});
  }
  for (const Nic& nic : description.inside.nics) {
    links.insert(links.end(), 2, {nic.gb_per_s, description_.network.latency_s});
  }
  links_.reserve(links_.size() + size_t(description.hosts) * links.size());
  for (int i = 0; i < description.hosts; ++i)
    links_.insert(links_.end(), links.begin(), links.end());
}

void Cluster::mark_followers(const Group& group) {
  Predecessors before(group.links);
  for (int gpu = 0; gpu < group.gpus; ++gpu) {
    const uint32_t origin = group.links + uint32_t(gpu);
    for (int to = 0; to < group.gpus; ++to) {
      before.walk(origin, group.to_gpu[size_t(gpu * group.gpus + to)]);
    }
    if (!has_network()) continue;
    const uint32_t nic_link = group.first_nic_link + 2 * uint32_t(group.nic_of_gpu[size_t(gpu)]);
    Hops out = group.to_nic[size_t(gpu)];
    out.push_back(nic_link);
    before.walk(origin, out);
    before.add_several(nic_link + 1);
    before.walk(nic_link + 1, group.from_nic[size_t(gpu)]);
  }
  for (size_t i = group.first_link; i < links_.size(); ++i) {
    links_[i].follows = before.has_one(uint32_t(i - group.first_link) % group.links);
  }
}

void Cluster::add_leaves() {
  first_trunk_ = uint32_t(links_.size());
  const NetworkDescription& network = description_.network;
  check_leaves(network, hosts_, description_.name);
  int leaves = 0;
  for (int host = 0; host < hosts_ && has_leaves(); ++host) {
    leaves = std::max(leaves, leaf_of(host, rails_ - 1) + 1);
  }
  if (leaves == 0) return;
  std::vector<double> gb_per_s(size_t(leaves), 0);
  for (int host = 0; host < hosts_; ++host) {
    const auto& nics = description_.groups[group_of_host_[size_t(host)]].inside.nics;
    for (size_t nic = 0; nic < nics.size(); ++nic) {
      gb_per_s[size_t(leaf_of(host, int(nic)))] += nics[nic].gb_per_s;
    }
  }
  for (const double sum : gb_per_s) {
    links_.insert(links_.end(), 2, {sum / network.oversubscription, network.latency_s});
  }
}

int Cluster::leaf_of(int host, int nic) const {
  const int pod = *leaf_of_host(description_.network, host);
  return description_.network.rails ? pod * rails_ + nic : pod;
}

int Cluster::leaf_of(const GpuLocation& location) const {
  return leaf_of(location.group->first_host + location.host,
                 location.group->nic_of_gpu[size_t(location.gpu)]);
}

Cluster::GpuLocation Cluster::location_of(int gpu) const {
  GXP_ASSERT(gpu >= 0 && gpu < gpus_);
  const auto behind = std::ranges::upper_bound(groups_, gpu, {}, &Group::first_gpu);
  const Group& group = *std::prev(behind);
  const int inside = gpu - group.first_gpu;
  return {&group, inside / group.gpus, inside % group.gpus};
}

int Cluster::host_of(int gpu) const {
  const GpuLocation location = location_of(gpu);
  return location.group->first_host + location.host;
}

size_t Cluster::route(int from, int to, Route& route) const {
  const GpuLocation a = location_of(from);
  const GpuLocation b = location_of(to);
  size_t count = 0;
  const auto append = [&](const GpuLocation& location, const Hops& hops) {
    const uint32_t base =
        location.group->first_link + uint32_t(location.host) * location.group->links;
    for (const LinkId hop : hops) route[count++] = base + hop;
  };
  if (a.group == b.group && a.host == b.host) {
    append(a, a.group->to_gpu[size_t(a.gpu * a.group->gpus + b.gpu)]);
    return count;
  }
  const auto nic_link = [](const GpuLocation& location) {
    return location.group->first_link + uint32_t(location.host) * location.group->links +
           location.group->first_nic_link +
           2 * uint32_t(location.group->nic_of_gpu[size_t(location.gpu)]);
  };
  append(a, a.group->to_nic[size_t(a.gpu)]);
  route[count++] = nic_link(a);
  if (has_leaves() && leaf_of(a) != leaf_of(b)) {
    route[count++] = first_trunk_ + 2 * uint32_t(leaf_of(a));
    route[count++] = first_trunk_ + 2 * uint32_t(leaf_of(b)) + 1;
  }
  route[count++] = nic_link(b) + 1;
  append(b, b.group->from_nic[size_t(b.gpu)]);
  return count;
}

std::string Cluster::name_of(uint32_t link) const {
  if (link >= first_trunk_) {
    const uint32_t leaf = (link - first_trunk_) / 2;
    return (link - first_trunk_) % 2 == 0 ? fmt::format("leaf {} -> spine", leaf)
                                          : fmt::format("spine -> leaf {}", leaf);
  }
  const auto group = std::prev(std::ranges::upper_bound(groups_, link, {}, &Group::first_link));
  const HostGroup& description = description_.groups[size_t(group - groups_.begin())];
  const uint32_t host = (link - group->first_link) / group->links;
  const uint32_t local = (link - group->first_link) % group->links;
  const std::string location = fmt::format("{} {}: ", description.name, host);
  if (local < group->first_nic_link) return location + description.inside.graph.name_of(local);
  const Nic& nic = description.inside.nics[(local - group->first_nic_link) / 2];
  const std::string& name = description.inside.graph.vertices()[nic.vertex].name;
  const bool out = (local - group->first_nic_link) % 2 == 0;
  return location + (out ? name + " -> network" : "network -> " + name);
}

std::vector<int> place_ranks(const Cluster& cluster, int ranks) {
  if (ranks < 1 || ranks > cluster.gpus()) {
    fail(ErrorKind::kConfig, "place {} ranks: {} has {} GPUs, each for one rank", ranks,
         cluster.description().name, cluster.gpus());
  }
  std::vector<int> gpu_of_rank(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) gpu_of_rank[size_t(rank)] = rank;
  return gpu_of_rank;
}

std::vector<int> hosts_of_ranks(const Cluster& cluster, std::span<const int> gpu_of_rank) {
  std::vector<int> hosts;
  for (const int gpu : gpu_of_rank) hosts.push_back(cluster.host_of(gpu));
  return number_by_appearance<int>(hosts);
}

}  // namespace gxp

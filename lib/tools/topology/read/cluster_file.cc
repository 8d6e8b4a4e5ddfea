#include "lib/tools/topology/read/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/text/near_match.h"
#include "lib/base/text_file.h"
#include "lib/base/toml_library.h"
#include "lib/tools/topology/model/synthetic.h"
#include "lib/tools/topology/nccl/host_of_tree.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

constexpr double kMaxLatencyUs = 1e7;  // 10 s
constexpr double kSecondsPerUs = 1e-6;
constexpr double kMbitPerGb = 8000;
constexpr size_t kMaxGroups = 256;

class Problems {
 public:
  explicit Problems(const std::string& path) : path_(path) {}
  void add(const toml::node& node, std::string_view what) {
    lines_ += fmt::format("{}{}:{}: {}", lines_.empty() ? "" : "\n", path_,
                          node.source().begin.line, what);
  }
  void throw_if_any() const {
    if (!lines_.empty()) throw Error(ErrorKind::kConfig, lines_);
  }

 private:
  const std::string& path_;
  std::string lines_;
};

struct Limits {
  double low = 0;
  double high = 0;
};

constexpr Limits kBandwidths = {1e-9, 1e6};  // GB/s, from a byte per second

// The keys of one table. Each is asked for once; then finish() knows which ones nobody asked for.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string name, Problems& problems)
      : table_(table), name_(std::move(name)), problems_(problems) {}

  double number(const char* key, Limits limits, std::optional<double> fallback = {}) {
    const toml::node* node = find(key, fallback.has_value());
    if (node == nullptr) return fallback.value_or(limits.high);
    const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value) return wrong(*node, key, "must be a number", limits.high);
    if (*value >= limits.low && *value <= limits.high) return *value;
    return wrong(*node, key,
                 fmt::format("is {}; must be from {} to {}", *value, limits.low, limits.high),
                 limits.high);
  }

  int integer(const char* key, Limits limits, std::optional<int> fallback = {}) {
    const toml::node* node = table_.get(key);
    if (node != nullptr && node->is_floating_point()) complain(key, "must be an integer");
    return int(number(key, limits, fallback));
  }

  double seconds(const char* key, std::optional<double> fallback_s = {}) {
    if (fallback_s) *fallback_s /= kSecondsPerUs;
    return number(key, {0, kMaxLatencyUs}, fallback_s) * kSecondsPerUs;
  }

  std::string text(const char* key, const std::optional<std::string>& fallback = {}) {
    const toml::node* node = find(key, fallback.has_value());
    if (node == nullptr) return fallback.value_or("");
    if (const auto value = node->value<std::string>(); node->is_string() && value->size() <= 4096) {
      return *value;
    }
    return wrong(*node, key, "must be a string of up to 4096 bytes", std::string());
  }

  bool boolean(const char* key, bool fallback) {
    const toml::node* node = find(key, true);
    if (node == nullptr) return fallback;
    return node->is_boolean() ? *node->value<bool>()
                              : wrong(*node, key, "must be true or false", fallback);
  }

  std::vector<int> integers(const char* key, Limits limits) {
    std::vector<int> list;
    const toml::node* node = find(key, true);
    if (node == nullptr) return list;
    if (!node->is_array()) return wrong(*node, key, "must be a list of integers", list);
    for (const toml::node& element : *node->as_array()) {
      const auto value = element.is_integer() ? element.value<int64_t>() : std::nullopt;
      if (!value || double(*value) < limits.low || double(*value) > limits.high) {
        return wrong(element, key,
                     fmt::format("must hold integers from {} to {}", limits.low, limits.high),
                     list);
      }
      list.push_back(int(*value));
    }
    return list;
  }

  [[nodiscard]] bool has(const char* key) const { return table_.contains(key); }
  [[nodiscard]] const toml::node* find(const char* key, bool optional) {
    known_.emplace_back(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr && !optional) problems_.add(table_, said(key, "is missing"));
    return node;
  }
  void complain(const char* key, std::string_view what) {
    problems_.add(*table_.get(key), said(key, what));
  }

  void finish() {
    for (const auto& [key, node] : table_) {
      const std::string word(key.str());
      if (std::ranges::find(known_, word) != known_.end()) continue;
      problems_.add(node, said(word, "is not known" + did_you_mean(word, known_)));
    }
  }

 private:
  [[nodiscard]] std::string said(std::string_view key, std::string_view what) const {
    return fmt::format("{}{} {}", name_, key, what);
  }
  template <class T>
  T wrong(const toml::node& node, const char* key, std::string_view what, T fallback) {
    problems_.add(node, said(key, what));
    return fallback;
  }

  const toml::table& table_;
  std::string name_;  // "hosts.", or empty for the root
  Problems& problems_;
  std::vector<std::string> known_;
};

// The file that is read, and what its groups of hosts come to.
struct Groups {
  const std::string& path;
  Problems& problems;
  size_t topology_bytes = 0;                       // of the files that are named
  std::vector<std::shared_ptr<HostTree>> trees{};  // a group's each
};

HostTree read_regular_host(TableReader& reader) {
  HostDescription host{.gpus = reader.integer("gpus", {1, Cluster::kMaxGpusPerHost}),
                       .nics = reader.integer("nics", {0, Cluster::kMaxGpusPerHost}, 0),
                       .numa_nodes = reader.integer("numa_nodes", {1, 64}, 1),
                       .pcie_gb_per_s = reader.number("pcie_gb_per_s", kBandwidths)};
  if (reader.find("nvlink_gb_per_s", true) != nullptr)
    host.nvlink_gb_per_s = reader.number("nvlink_gb_per_s", kBandwidths);
  return make_regular_host(host);
}

// Messages name this file, and the places are in another one.
void forget_places(HostTree& tree) {
  for (PartId id = 0; id < tree.parts().size(); ++id) tree[id].place = {};
  for (CrossLink& link : tree.cross_links()) link.place = {};
}

HostTree read_host_from_file(TableReader& reader, Groups& groups) {
  for (const char* key :
       {"gpus", "nics", "numa_nodes", "pcie_gb_per_s", "nvlink_gb_per_s", "inter_numa_gb_per_s"}) {
    if (reader.find(key, true) != nullptr) reader.complain(key, "is read from the topology file");
  }
  const std::string folder = std::filesystem::path(groups.path).parent_path();
  const std::string named = reader.text("topology");
  if (named.empty()) {
    reader.complain("topology", "names nothing");
    return {};
  }
  const SourceInput input = look_at_source(named, folder.empty() ? "." : folder);
  groups.topology_bytes += input.text.size();
  if (groups.topology_bytes > kMaxSourceBytes) {
    fail(ErrorKind::kConfig, "{}: the topology files have more than {} together", groups.path,
         format_bytes(kMaxSourceBytes));
  }
  if (is_cluster_toml(input)) {
    reader.complain("topology", "is a cluster; it must describe a single host");
    return {};
  }
  HostTree tree = load_host(input);
  if (tree.all_of(PartKind::kGpu).empty()) {
    reader.complain("topology", fmt::format("has no GPU, by {}", tree.source));
    return {};
  }
  return tree;
}

// Each NIC's, where it has one port.
void set_port_speeds(HostTree& tree, double mbit_per_s) {
  for (const PartId nic : tree.all_of(PartKind::kNic)) {
    if (tree[nic].below.size() != 1) continue;
    if (auto* port = std::get_if<PortInfo>(&tree[tree[nic].below[0]].info))
      port->mbit_per_s = mbit_per_s;
  }
}

HostGroup read_hosts(const toml::table& table, Groups& groups) {
  TableReader reader(table, "hosts.", groups.problems);
  HostGroup group{.name = reader.text("name", "host"),
                  .hosts = reader.integer("count", {1, double(Cluster::kMaxHosts)})};
  LinkLatencies latencies{.pcie_s = reader.seconds("pcie_latency_us")};
  latencies.nvlink_s = reader.seconds("nvlink_latency_us", latencies.pcie_s);
  latencies.inter_numa_s = reader.seconds("inter_numa_latency_us", latencies.pcie_s);
  const bool is_regular = reader.find("topology", true) == nullptr;
  HostTree tree = is_regular ? read_regular_host(reader) : read_host_from_file(reader, groups);
  const bool has_inter_numa = is_regular && tree.all_of(PartKind::kNumaNode).size() > 1;
  group.inside = host_topology_of(
      tree, latencies, has_inter_numa ? reader.number("inter_numa_gb_per_s", kBandwidths) : 0);
  forget_places(tree);
  if (reader.find("nic_gb_per_s", true) != nullptr) {
    const double gb_per_s = reader.number("nic_gb_per_s", kBandwidths);
    for (Nic& nic : group.inside.nics) nic.gb_per_s = gb_per_s;
    set_port_speeds(tree, gb_per_s * kMbitPerGb);
  }
  groups.trees.push_back(std::make_shared<HostTree>(std::move(tree)));
  group.nic_of_gpu = reader.integers("nic_of_gpu", {0, Cluster::kMaxGpusPerHost - 1});
  reader.finish();
  return group;
}

NetworkDescription read_network(const toml::table& table, Problems& problems) {
  TableReader reader(table, "network.", problems);
  NetworkDescription network{.latency_s = reader.seconds("latency_us")};
  const std::string kind = reader.text("kind");
  if (kind == "fat-tree") {
    if (reader.find("leaf_of_host", true) != nullptr) {
      network.leaf_of_host = reader.integers("leaf_of_host", {0, double(Cluster::kMaxHosts)});
      if (reader.find("hosts_per_leaf", true) != nullptr) {
        reader.complain("hosts_per_leaf", "contradicts leaf_of_host; give one of them");
      }
    } else {
      network.hosts_per_leaf = reader.integer("hosts_per_leaf", {1, double(Cluster::kMaxHosts)});
    }
    network.oversubscription = reader.number("oversubscription", {0.01, 1000}, 1);
    network.rails = reader.boolean("rails", false);
  } else if (kind != "switch" && reader.has("kind")) {
    reader.complain("kind", "is unknown; must be 'switch' or 'fat-tree'");
  }
  reader.finish();
  return network;
}

void read_all_hosts(const toml::node& hosts, ClusterDescription& cluster, Groups& groups) {
  if (const toml::table* table = hosts.as_table()) {
    cluster.groups.push_back(read_hosts(*table, groups));
    return;
  }
  const toml::array* array = hosts.as_array();
  if (array == nullptr || array->empty() || array->size() > kMaxGroups) {
    return groups.problems.add(
        hosts, fmt::format("hosts must be a table or a list of 1 to {}", kMaxGroups));
  }
  for (const toml::node& element : *array) {
    const toml::table* table = element.as_table();
    if (table == nullptr) return groups.problems.add(element, "hosts must hold tables");
    cluster.groups.push_back(read_hosts(*table, groups));
  }
}

struct ParsedCluster {
  ClusterDescription description;
  std::vector<std::shared_ptr<HostTree>> trees;  // of the groups
};

ParsedCluster parse(std::string_view text, const std::string& path) {
  const toml::table root = parse_toml_or_fail(text, path);
  Problems problems(path);
  TableReader reader(root, "", problems);
  Groups groups{.path = path, .problems = problems};
  ClusterDescription cluster{.name = path,
                             .message_overhead_s = reader.seconds("message_overhead_us"),
                             .fold_gb_per_s = reader.number("fold_gb_per_s", kBandwidths)};
  if (const toml::node* hosts = reader.find("hosts", false)) {
    read_all_hosts(*hosts, cluster, groups);
  }
  int64_t host_count = 0;
  for (const HostGroup& group : cluster.groups) host_count += group.hosts;
  if (const toml::node* network = reader.find("network", host_count <= 1)) {
    if (network->is_table()) {
      cluster.network = read_network(*network->as_table(), problems);
    } else {
      reader.complain("network", "must be a table");
    }
  }
  reader.finish();
  problems.throw_if_any();
  return {std::move(cluster), std::move(groups.trees)};
}

}  // namespace

ClusterDescription parse_cluster(std::string_view text, const std::string& path) {
  return parse(text, path).description;
}

Topology parse_cluster_topology(std::string_view text, const std::string& path) {
  ParsedCluster parsed = parse(text, path);
  return topology_of(parsed.description, std::move(parsed.trees));
}

ClusterDescription load_cluster(const std::string& path) {
  return parse_cluster(read_text_file(path, kMaxClusterFileBytes), path);
}

}  // namespace gxp

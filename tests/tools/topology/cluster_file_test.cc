#include "lib/tools/topology/read/cluster_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_paths.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

const std::string kSource = GXP_SOURCE_DIR;
const std::string kPath = std::string(GXP_TEST_DATA) + "/topo/c.toml";

const std::string kRoot = "message_overhead_us = 1\nfold_gb_per_s = 100\n";
const std::string kHosts =
    "[hosts]\ncount = 2\ngpus = 4\nnics = 2\npcie_gb_per_s = 24\n"
    "pcie_latency_us = 0.5\nnic_gb_per_s = 12.5\n";
const std::string kNetwork = "[network]\nkind = 'switch'\nlatency_us = 2\n";

ClusterDescription cluster_of(const std::string& text) { return parse_cluster(text, kPath); }

std::string cluster_complaint(const std::string& text) {
  std::string message = complaint(ErrorKind::kConfig, [&] { cluster_of(text); });
  for (size_t at; (at = message.find(kPath)) != std::string::npos;) {
    message.replace(at, kPath.size(), "c.toml");
  }
  return message;
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  REQUIRE(file);
  return text.str();
}

// `text` with its first `old` replaced.
std::string with(std::string text, const std::string& old, const std::string& replacement) {
  return text.replace(text.find(old), old.size(), replacement);
}

}  // namespace

TEST_CASE("a cluster file says all of a cluster", "[topo]") {
  const ClusterDescription cluster =
      cluster_of(kRoot + kHosts + "nvlink_gb_per_s = 300\nnic_of_gpu = [1, 1, 0, 0]\n" +
                 "[network]\nkind = 'fat-tree'\nlatency_us = 2\nhosts_per_leaf = 4\nrails = true\n"
                 "oversubscription = 1.5\n");
  CHECK(cluster.message_overhead_s == Approx(1e-6));
  CHECK(cluster.fold_gb_per_s == 100);
  REQUIRE(cluster.groups.size() == 1);
  CHECK(cluster.groups[0].hosts == 2);
  CHECK(cluster.groups[0].inside.gpus.size() == 4);
  CHECK(cluster.groups[0].inside.nics.size() == 2);
  CHECK(cluster.groups[0].inside.nics[1].gb_per_s == 12.5);
  CHECK(cluster.groups[0].nic_of_gpu == std::vector<int>{1, 1, 0, 0});
  CHECK(cluster.network.latency_s == Approx(2e-6));
  CHECK(cluster.network.hosts_per_leaf == 4);
  CHECK(cluster.network.rails);
  CHECK(cluster.network.oversubscription == 1.5);
}

TEST_CASE("latencies that are not given are PCIe's", "[topo]") {
  const ClusterDescription cluster =
      cluster_of(kRoot + kHosts + "nvlink_gb_per_s = 300\n" + kNetwork);
  for (const Link& link : cluster.groups[0].inside.graph.links()) {
    CHECK(link.latency_s == Approx(0.5e-6));
  }
}

TEST_CASE("hosts may be of several kinds, and come from NCCL's XML", "[topo]") {
  const Cluster cluster(
      cluster_of(kRoot +
                 "[[hosts]]\nname = 'new'\ncount = 2\ntopology = 'oci-H100-topology.xml'\n"
                 "pcie_latency_us = 0.5\n[[hosts]]\nname = 'old'\ncount = 3\nnic_gb_per_s = 12.5\n"
                 "topology = 'aws-p4d-24xl-topo.xml'\npcie_latency_us = 1\n" +
                 kNetwork));
  CHECK(cluster.hosts() == 5);
  CHECK(cluster.gpus() == 40);
  CHECK(cluster.description().groups[0].inside.nics[0].gb_per_s == 45);
  CHECK(cluster.description().groups[1].inside.nics[0].gb_per_s == 12.5);
}

TEST_CASE("the inside of a host comes from whatever tells of one", "[topo]") {
  const auto [topology, gpus, nics] = GENERATE(table<std::string, size_t, size_t>({
      {"dgx-h100", 8, 8},
      {"2xnuma:3", 6, 2},
      {"oci-H100-topology.xml", 8, 8},
      {"./smi/dgx1-v100-4mlx.txt", 8, 4},
      {"hwloc/power8gpudistances.xml", 4, 0},
  }));
  CAPTURE(topology);
  const ClusterDescription cluster = cluster_of(
      kRoot + "[hosts]\ncount = 1\nnic_gb_per_s = 50\npcie_latency_us = 1\ntopology = '" +
      topology + "'\n" + kNetwork);
  CHECK(cluster.groups[0].inside.gpus.size() == gpus);
  CHECK(cluster.groups[0].inside.nics.size() == nics);
  CHECK(Cluster(cluster).gpus() == int(gpus));
}

TEST_CASE("the example and the one in the manual are clusters", "[topo]") {
  CHECK(Cluster(load_cluster(kSource + "/examples/cluster.toml")).gpus() == 4096);
  const std::string manual = read(kSource + "/docs/FORMAT.md");
  const size_t begin = manual.find("```toml\n") + 8;
  REQUIRE(begin > 8);
  CHECK(Cluster(cluster_of(manual.substr(begin, manual.find("```", begin) - begin))).gpus() == 96);
}

TEST_CASE("a wrong cluster file is an error that names line and key", "[topo]") {
  const std::string good = kRoot + kHosts + kNetwork;
  REQUIRE(cluster_complaint(good) == "");
  REQUIRE(cluster_complaint("\xef\xbb\xbf# größer\n" + good) == "");
  const auto [text, said] = GENERATE_COPY(table<std::string, std::string>({
      {"",
       "c.toml:1: message_overhead_us is missing\nc.toml:1: fold_gb_per_s is missing\n"
       "c.toml:1: hosts is missing"},
      {"x = [", "c.toml:1: "},
      {"x = [0,\n}", "c.toml:1: it is not TOML; is a list not closed?"},
      {"x = 1\n [[ =]]", "c.toml:2: a name must follow '['"},
      {std::string(3000, '['), "c.toml:1: "},
      {"hostsϟ = 1", "c.toml:1: non-ASCII letters must be quoted"},
      {kRoot + "hosts = 3\n", "c.toml:3: hosts must be a table or a list of 1 to 256"},
      {kRoot + "hosts = []\n", "c.toml:3: hosts must be a table or a list of 1 to 256"},
      {kRoot + "hosts = [1]\n", "c.toml:3: hosts must hold tables"},
      {kRoot + kHosts, "c.toml:1: network is missing"},
      {"network = 1\n" + kRoot + kHosts, "c.toml:1: network must be a table"},
      {with(good, "count = 2", "count = 0"), "c.toml:4: hosts.count is 0; must be from 1 to 65536"},
      {with(good, "count = 2", "count = 2.0"), "c.toml:4: hosts.count must be an integer"},
      {with(good, "count = 2", "count = 'two'"), "c.toml:4: hosts.count must be a number"},
      {with(good, "count = 2", ""), "c.toml:3: hosts.count is missing"},
      {with(good, "gpus = 4", "gpus = 99999999999999"),
       "hosts.gpus is 99999999999999; must be from"},
      {with(good, "gpus", "gbus"), "c.toml:5: hosts.gbus is not known; did you mean 'gpus'?"},
      {with(good, "24", "-24"), "c.toml:7: hosts.pcie_gb_per_s is -24; must be from 1e-09 to"},
      {with(good, "24", "nan"), "hosts.pcie_gb_per_s is nan; must be from"},
      {with(good, "24", "inf"), "hosts.pcie_gb_per_s is inf; must be from"},
      {with(good, "24", "true"), "hosts.pcie_gb_per_s must be a number"},
      {with(good, "0.5", "-1"), "hosts.pcie_latency_us is -1; must be from 0 to"},
      {with(good, "nics = 2", "nics = 2\nnuma_nodes = 2"), "hosts.inter_numa_gb_per_s is missing"},
      {with(good, "nics = 2", "nics = 2\nnic_of_gpu = 1"), "hosts.nic_of_gpu must be a list"},
      {with(good, "nics = 2", "nics = 2\nnic_of_gpu = [-1]"),
       "hosts.nic_of_gpu must hold integers"},
      {with(good, "nics = 2", "nics = 2\nname = 7"), "hosts.name must be a string"},
      {with(good, "nics = 2", "nics = 2\ntopology = 'oci-H100-topology.xml'"),
       "c.toml:5: hosts.gpus is read from the topology file"},
      {with(good, "'switch'", "'ring'"), "network.kind is unknown; must be 'switch' or 'fat-tree'"},
      {with(good, "'switch'", "'fat-tree'"), "network.hosts_per_leaf is missing"},
      {with(good, "'switch'", "'fat-tree'\nhosts_per_leaf = 2\nleaf_of_host = [0, 1]"),
       "network.hosts_per_leaf contradicts leaf_of_host"},
      {good + "rails = true\n", "c.toml:13: network.rails is not known"},
      {with(good, "'switch'", "'fat-tree'\nhosts_per_leaf = 2\nrails = 1"),
       "network.rails must be true or false"},
  }));
  CAPTURE(text);
  CHECK(cluster_complaint(text).find(said) != std::string::npos);
}

TEST_CASE("a topology file that is not there or broken is named", "[topo]") {
  const auto hosts = [](const std::string& topology) {
    return kRoot + "[hosts]\ncount = 1\npcie_latency_us = 1\ntopology = '" + topology + "'\n";
  };
  CHECK(complaint(ErrorKind::kIo, [&] {
          cluster_of(hosts("absent.xml"));
        }).find("absent.xml': no such file or name") != std::string::npos);
  CHECK(cluster_complaint(hosts("")).find("hosts.topology names nothing") != std::string::npos);
  CHECK(cluster_complaint(hosts("aws-g5.48xl-topo.xml")).find("has no GPU") != std::string::npos);
  CHECK(cluster_complaint(hosts(kSource + "/examples/cluster.toml"))
            .find("hosts.topology is a cluster") != std::string::npos);
  CHECK(complaint(ErrorKind::kCorrupt, [&] {
          cluster_of(hosts("azure-ncv4-graph.xml"));
        }).find("does not describe the inside of a host") != std::string::npos);
  CHECK(complaint(ErrorKind::kCorrupt, [&] {
          cluster_of(hosts("README.md"));
        }).find("README.md:") != std::string::npos);
}

TEST_CASE("the topology files of a cluster are bounded together", "[topo]") {
  const auto file =
      std::filesystem::temp_directory_path() / fmt::format("gxp-cluster-{}.xml", ::getpid());
  std::ofstream(file) << "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" "
                         "class=\"0x030000\"/></cpu></system>"
                      << std::string(13 << 20, ' ');
  std::string text = kRoot;
  for (int i = 0; i < 5; ++i)
    text += "[[hosts]]\ncount = 1\npcie_latency_us = 1\ntopology = '" + file.string() + "'\n";
  CHECK(cluster_complaint(text) == "c.toml: the topology files have more than 64 MiB together");
  std::filesystem::remove(file);
}

TEST_CASE("a file that is too large is refused before it is read to its end", "[topo]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "c.toml";
  std::ofstream(file) << "[hosts]\n";
  std::filesystem::resize_file(file, 2 << 20);
  CHECK(complaint(ErrorKind::kCorrupt, [&] { load_cluster(file); }) ==
        "read " + file + ": it has more than 1 MiB; is it the right file?");
}

TEST_CASE("a cluster file is a topology too: hosts, their trees, the switches", "[topo]") {
  const std::string file = kSource + "/examples/cluster.toml";
  const Topology topology = parse_cluster_topology(read_text_file(file, 1 << 20), file);
  REQUIRE(topology.trees.size() == 1);
  const HostTree& host = *topology.trees[0];
  CHECK(host.all_of(PartKind::kGpu).size() == 8);
  const NcclPaths paths(host);
  CHECK(paths.find(paths.gpus()[0], paths.ports()[0]).type == PathType::kPix);
  CHECK(paths.find(paths.gpus()[0], paths.ports()[0]).gb_per_s == Approx(48));
  CHECK(std::get<PortInfo>(host[paths.ports()[0]].info).mbit_per_s == 400'000);
  CHECK(topology.hosts.size() == 512);
  CHECK(topology.switches.size() == 1 + 32);
  CHECK(topology.switches.at(topology.hosts[16].leaves.at(0)).name == "leaf 1");
  CHECK(topology.switches[1].uplink_gb_per_s == 16 * 8 * 50 / 2);
}

}  // namespace gxp

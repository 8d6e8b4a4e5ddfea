#include "lib/tools/topology/view/rank_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/error.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/smi_matrix.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/rings/cluster_plan.h"
#include "lib/tools/topology/view/plan_report.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

const std::string kViewData = std::string(GXP_TEST_DATA) + "/topo/";

// `hosts` that are like each of `kinds`, the kinds in turn.
Topology cluster_of(const std::vector<std::string>& kinds, size_t hosts) {
  Topology topology{.name = "cluster", .source = "a test"};
  for (const std::string& kind : kinds) topology.trees.push_back(load_topology(kind).trees.front());
  for (size_t i = 0; i < hosts; ++i)
    topology.hosts.push_back({.name = "h" + std::to_string(i), .tree = i % kinds.size()});
  return topology;
}

std::vector<RankView> all_views(const Topology& topology) {
  std::vector<RankView> views;
  for (int rank = 0; rank < RankSeats(topology).ranks(); ++rank)
    views.push_back(view_rank(topology, rank));
  return views;
}

// By channel.
template <class Neighbours>
std::map<int64_t, std::vector<Neighbours>> by_channel(const std::vector<Neighbours>& rows) {
  std::map<int64_t, std::vector<Neighbours>> found;
  for (const Neighbours& row : rows) {
    for (const int64_t channel : row.channels) found[channel].push_back(row);
  }
  return found;
}

// The ranks that a ring passes from rank 0 on, back to it.
size_t length_of_ring(const std::vector<RankView>& views, int64_t channel) {
  size_t length = 0;
  int rank = 0;
  do {
    const auto rings = by_channel(views[size_t(rank)].neighbours.rings);
    const int next = rings.at(channel).at(0).next;
    const auto of_next = by_channel(views[size_t(next)].neighbours.rings);
    CHECK(of_next.at(channel).at(0).previous == rank);
    CHECK((of_next.at(channel).at(0).previous_by == rings.at(channel).at(0).next_by ||
           views[size_t(next)].seat.host != views[size_t(rank)].seat.host));
    rank = next;
  } while (rank != 0 && ++length <= views.size());
  return length + 1;
}

// For each channel the edges of its tree, which has one root.
std::vector<size_t> edges_of_trees(const std::vector<RankView>& views, int64_t tree) {
  const auto in_tree = [&](const RankView& view, int64_t channel) {
    const auto trees = by_channel(view.neighbours.trees);
    for (const TreeNeighbours& row : trees.at(channel)) {
      if (std::ranges::find(row.trees, tree) != row.trees.end()) return row;
    }
    FAIL("no row of the tree");
    return TreeNeighbours{};
  };
  std::vector<size_t> all;
  for (size_t channel = 0; channel < by_channel(views[0].neighbours.trees).size(); ++channel) {
    size_t edges = 0;
    size_t roots = 0;
    for (const RankView& view : views) {
      const TreeNeighbours row = in_tree(view, int64_t(channel));
      roots += row.parent ? 0 : 1;
      for (const int64_t child : row.children) {
        CHECK(in_tree(views.at(size_t(child)), int64_t(channel)).parent == view.rank);
        ++edges;
      }
    }
    CHECK(roots == 1);
    all.push_back(edges);
  }
  return all;
}

}  // namespace

TEST_CASE("ranks fill the GPUs host by host, and every rank is found again", "[inspect][rank]") {
  const Topology topology = cluster_of({"dgx-h100", "ring:4"}, 5);  // 8, 4, 8, 4, 8
  const RankSeats seats(topology);
  REQUIRE(seats.ranks() == 32);
  int expected = 0;
  for (size_t host = 0; host < 5; ++host) {
    for (int local_rank = 0; local_rank < (host % 2 == 0 ? 8 : 4); ++local_rank, ++expected) {
      const RankSeats::Seat seat = seats.find(expected);
      CHECK(seat.host == host);
      CHECK(seat.local_rank == local_rank);
      CHECK(seats.rank_at(seat) == expected);
      CHECK(seats.seat_of_place(host, seats.place_of(seat)).local_rank == local_rank);
    }
  }
}

TEST_CASE("of one host, ranks are those that its file says", "[inspect][rank]") {
  Topology topology = load_topology(kViewData + "oci-H100-topology.xml");
  HostTree& host = *topology.trees[0];
  for (const PartId gpu : host.all_of(PartKind::kGpu)) {
    auto& info = std::get<GpuInfo>(host[gpu].info);
    info.rank = 15 - *info.number;  // as the second host's dump, ranks against the GPUs' numbers
  }
  const RankView view = view_rank(topology, 10);
  CHECK(view.rank == 10);
  CHECK(view.seat.local_rank == 2);
  CHECK(names_of_parts(host)[view.gpu] == "GPU5");
  for (const RankPeer& peer : view.peers)
    CHECK(peer.rank == 15 - std::get<GpuInfo>(host[peer.gpu].info).number.value());
  const auto& rings = view.neighbours.rings;
  REQUIRE_FALSE(rings.empty());
  for (const RingNeighbours& ring : rings) CHECK((ring.next >= 8 && ring.next < 16));
  CHECK_THROWS_WITH(view_rank(topology, 0), Catch::Contains("it has 8 ranks according to 8, 9"));
  topology.hosts.push_back(topology.hosts[0]);  // of several, they order the local ranks alone
  CHECK(names_of_parts(host)[view_rank(topology, 10).gpu] == "GPU5");
  CHECK(view_rank(topology, 10).seat.host == 1);
}

TEST_CASE("a rank's paths are those that NCCL's routes give its GPU", "[inspect][rank]") {
  const std::string source =
      GENERATE_COPY(as<std::string>(), "dgx-h100", kViewData + "oci-H100-topology.xml",
                    kViewData + "azure-ndv4-topo.xml", kViewData + "azure-ncv4-topo.xml",
                    kViewData + "rccl-topo_8p6l.xml", "2xnuma:2");
  const Topology topology = load_topology(source);
  const NcclPaths paths(*topology.trees[0]);
  const NcclRoutes routes(paths);
  for (const RankView& view : all_views(topology)) {
    CAPTURE(source, view.rank);
    CHECK(view.peers.size() + 1 == paths.gpus().size());
    for (const RankPeer& peer : view.peers) {
      CHECK(peer.route.type == routes.find(view.gpu, peer.gpu).type);
      CHECK(peer.peer_to_peer.rule == routes.peer_to_peer(view.gpu, peer.gpu).rule);
    }
    size_t own = 0;
    for (const RankNic& nic : view.nics) {
      CHECK(nic.route.gb_per_s == routes.find(view.gpu, nic.port).gb_per_s);
      if (!nic.is_own) continue;
      ++own;
      for (const RankNic& other : view.nics)
        CHECK(nic.route.gb_per_s >= other.route.gb_per_s);  // none is nearer than its own
    }
    CHECK((own > 0) == !paths.ports().empty());
  }
}

TEST_CASE("the next of my previous is me, in one ring through all ranks of each channel",
          "[inspect][rank]") {
  const auto [kinds, hosts] = GENERATE(table<std::vector<std::string>, size_t>(
      {{{"dgx-h100"}, 1}, {{"dgx-h100"}, 2}, {{"dgx-h100", "dgx-a100"}, 5}, {{"2xnuma:2"}, 3}}));
  const Topology topology = cluster_of(kinds, hosts);
  const std::vector<RankView> views = all_views(topology);
  const ClusterPlan plan = plan_cluster(topology);
  const size_t channels = plan.rings[0].channels.size();
  CAPTURE(kinds[0], hosts);
  double gb_per_s = 0;
  for (const RingNeighbours& ring : views[0].neighbours.rings) gb_per_s += ring.gb_per_s;
  CHECK(gb_per_s == Approx(plan.rings[0].gb_per_s));
  for (size_t channel = 0; channel < channels; ++channel)
    CHECK(length_of_ring(views, int64_t(channel)) == views.size());
  for (int64_t tree = 0; tree < (hosts == 1 ? 1 : 2); ++tree)
    CHECK(edges_of_trees(views, tree) == std::vector<size_t>(channels, views.size() - 1));
}

TEST_CASE("other hosts are a line a rail, whatever their number", "[inspect][rank]") {
  const Topology topology = cluster_of({"dgx-h100"}, 1000);
  const RankView view = view_rank(topology, 5003);
  CHECK(view.seat.host == 625);
  REQUIRE(view.rails.size() == 8);
  for (size_t i = 0; i < 8; ++i) {
    CHECK(view.rails[i].local_ranks == std::vector<int64_t>{int64_t(i)});
    const auto nic = std::ranges::find(view.nics, view.rails[i].ports.at(0), &RankNic::port);
    REQUIRE(nic != view.nics.end());
    CHECK(nic->is_own == (i == 3));
    CHECK(nic->route.type == (i == 3 ? PathType::kPix : PathType::kPxn));
  }
}

TEST_CASE("hosts that NVLink joins are counted, and their ranks not made up", "[inspect][rank]") {
  std::string text = "<system version=\"1\">";
  for (const int host : {0, 1}) {
    text += fmt::format(
        "<cpu numaid=\"0\" host_hash=\"0x{0}\"><pci busid=\"1\" class=\"0x0302\"><gpu dev=\"0\" "
        "sm=\"100\" rank=\"{0}\"><nvlink target=\"f\" count=\"18\" tclass=\"0x068000\"/></gpu>"
        "</pci></cpu>",
        host);
  }
  const Topology topology = topology_of(read_nccl_xml(text + "</system>", "n.xml"));
  CHECK_THROWS_WITH(view_rank(topology, 1), Catch::Contains("describes 2 hosts that NVLink joins"));
  const Report report = plan_report(topology, plan_cluster(topology));
  CHECK_THAT(to_text(report), Catch::Contains("hosts: 2\n"));
}

TEST_CASE("where nothing is planned a rank says why; a rank that there is not is refused",
          "[inspect][rank]") {
  CHECK_THAT(view_rank(cluster_of({"ring:4"}, 2), 1).neighbours.notes.at(0),
             Catch::Contains("no rings and trees"));
  CHECK_THROWS_WITH(
      view_rank(cluster_of({"dgx-h100"}, 2), 16),
      "show rank 16 of cluster: it has 16 ranks, numbered from 0, one per GPU of 2 hosts");
  CHECK_THROWS_WITH(view_rank(load_topology(kViewData + "aws-p5.48xl-topo-2025-06.xml"), 1),
                    Catch::Contains("does not mark which PCIe devices are GPUs"));
  CHECK_THROWS_WITH(view_rank(load_topology(kViewData + "azure-ncv4-graph.xml"), 1),
                    Catch::Contains("describes no host"));
  Topology topology = cluster_of({"dgx-h100"}, 2);
  topology.hosts[1].tree = kNoTree;
  CHECK_THROWS_WITH(view_rank(topology, 1), Catch::Contains("the hardware of host"));
}

TEST_CASE("a rank's view has no speeds and places that its source does not tell",
          "[inspect][rank]") {
  const auto [cell, row] = GENERATE(table<std::string, std::string>(
      {{"PIX", "   1  GPU1  PIX              yes"},
       {"NS", "   1  GPU1  unknown             no            NVML reports NS"}}));
  const std::string text = fmt::format("\tGPU0\tGPU1\nGPU0\tX\t{0}\nGPU1\t{0}\tX\n", cell);
  const Topology topology = topology_of(host_of_matrix(read_pasted_matrix(text, "m.txt"), "m.txt"));
  const std::string report = to_text(rank_report(topology, view_rank(topology, 0)));
  CAPTURE(report);
  CHECK_THAT(report, Catch::Contains(row));
  CHECK(report.find("12") == std::string::npos);  // GB/s of NCCL's default
  CHECK((report.find("NIC that NCCL gives it") == std::string::npos) == (cell == "NS"));
}

TEST_CASE("a host without GPU has ranks on its processors; several have none that are known",
          "[inspect][rank]") {
  HostTree host;
  host.name = "cpus";
  const PartId node =
      host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{.affinity = "ff"}});
  const PartId nic = host.add({.kind = PartKind::kNic, .above = node, .info = NicInfo{}});
  host.add({.kind = PartKind::kPort, .above = nic, .info = PortInfo{.name = "eth0"}});
  Topology topology = topology_of(host);
  CHECK(to_text(rank_report(topology, view_rank(topology, 3))) ==
        R"(rank: 3
host: cpus
hosts: 1
local rank: 3

NUMA node  CPUs  memory  NICs
NUMA0      0-7           eth0

notes
no GPU is known: the launcher decides how many ranks share the host's NUMA nodes and NICs
)");
  topology.hosts.push_back(topology.hosts[0]);
  CHECK_THROWS_WITH(view_rank(topology, 3), Catch::Contains("no GPU is known in its 2 hosts"));
}

TEST_CASE("a rank of a job on two hosts, for people", "[inspect][rank]") {
  const Topology topology = cluster_of({kViewData + "azure-ncv4-topo.xml"}, 2);
  CHECK(to_text(rank_report(topology, view_rank(topology, 4))) == R"(rank: 4
ranks: 8
host: h1
  its index: 1
hosts: 2
local rank: 0
GPU: GPU0
  bus id: 0001:00:00.0
  model: 10de:20b5, sm_80
NUMA node: NUMA0
  CPUs: 0-23
NIC that NCCL gives it: eth0
  GPUDirect RDMA: no
    because: eth0 does not offer it (gdr=0): neither nvidia_peermem nor DMA-BUF was found, or it is not an RDMA device

rank  GPU   path  GB/s  via    peer-to-peer  because
   5  GPU1  SYS     12  NUMA1  no            SYS is beyond PXB, NCCL's limit for peer-to-peer; NCCL goes through host memory
   6  GPU2  SYS     12  NUMA2  no            SYS is beyond PXB, NCCL's limit for peer-to-peer; NCCL goes through host memory
   7  GPU3  SYS     12  NUMA3  no            SYS is beyond PXB, NCCL's limit for peer-to-peer; NCCL goes through host memory

NIC   its own  path  GB/s  via  GPUDirect sends  receives
eth0      yes  PHB     12       no               no

local ranks of other hosts  by NIC  path  via
              [0, 1, 2, 3]  eth0    PHB

channels of rings  previous rank  by    next rank  by   GB/s
              [0]              3  eth0          5  SYS    12

channels of trees   trees  parent rank  child ranks
              [0]  [0, 1]            0          [5]
)");
}

}  // namespace gxp

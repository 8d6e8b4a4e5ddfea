#include "lib/topo/plan/plan_file.h"

#include "lib/tools/topology/read/slurm_topology.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/rings/cluster_plan.h"
#include "lib/tools/topology/rings/rank_seats.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

using Ranks = std::vector<int>;

PlanFile planned(Topology topology, size_t hosts = 0) {
  if (hosts > 0) topology.hosts.resize(hosts, topology.hosts[0]);
  const PlanFile file = plan_of_seats(topology, plan_cluster(topology));
  CHECK(read_plan_file(write_plan_file(file), "plan") == file);
  return file;
}

PlanFile planned(const std::string& name, size_t hosts = 0) {
  return planned(load_topology(name), hosts);
}

PlanFile two_leaves() {
  return planned(
      read_slurm_topology("SwitchName=spine Switches=left,right\n"
                          "SwitchName=left Nodes=a,c\n"
                          "SwitchName=right Nodes=b,d\n",
                          "topology.conf"));
}

}  // namespace

TEST_CASE("ranks follow each other by host, and hosts by switch", "[topo][plan]") {
  const Ranks hosts = {0, 0, 1, 1, 2, 2, 3, 3};  // a, c, b, d as Slurm's file names them
  CHECK(plan_for_ranks(two_leaves(), 8, hosts).rings == Ranks{0, 1, 2, 3, 4, 5, 6, 7});
  const Ranks around = {0, 1, 2, 3, 0, 1, 2, 3};  // rank 4 is the second on host a
  CHECK(plan_for_ranks(two_leaves(), 8, around).rings == Ranks{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(plan_for_ranks(two_leaves(), 8, around).groups == around);
}

TEST_CASE("a job of fewer ranks than GPUs has the plan's order of those", "[topo][plan]") {
  const RankPlan plan = plan_for_ranks(planned("dgx-h100", 2), 8, Ranks{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(plan.groups == Ranks{0, 1, 0, 1, 0, 1, 0, 1});
  REQUIRE(plan.rings.size() % 8 == 0);
  for (size_t at = 0; at < plan.rings.size(); at += 4) {
    for (size_t i = 1; i < 4; ++i) CHECK(plan.rings[at + i] % 2 == plan.rings[at] % 2);
  }
}

TEST_CASE("groups within a host that are not of one size are none", "[topo][plan]") {
  const PlanFile file{.topology = "t",
                      .ranks_of_hosts = {4},
                      .plan = {.ranks = 4, .rings = {0, 1, 2, 3}, .groups = {0, 0, 1, 1}}};
  CHECK(plan_for_ranks(file, 4, {}).groups == Ranks{0, 0, 1, 1});
  CHECK(plan_for_ranks(file, 3, {}).groups.empty());
}

TEST_CASE("a plan that does not fit the job is refused", "[topo][plan]") {
  const auto [file, ranks, hosts, said] = GENERATE(table<PlanFile, int, Ranks, std::string>(
      {{two_leaves(), 2, {0, 1}, "has 4 hosts and the job 2"},
       {planned("ring:4"), 5, {}, "host 0 has 4 GPUs and the job more ranks there"},
       {planned("dgx-h100"), 2, {0, 1}, "has 1 hosts and the job 2; write one for as many"},
       {planned("dgx-h100", 2), 10, {0, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "has 8 GPUs"}}));
  CHECK(complaint(ErrorKind::kConfig, [&, &file = file, &ranks = ranks, &hosts = hosts] {
          plan_for_ranks(file, ranks, hosts);
        }).find(said) != std::string::npos);
}

TEST_CASE("a damaged plan is refused by name", "[topo][plan]") {
  const std::string head = R"({"schema": "gxp.rank-plan/1", "topology": "t", )";
  const auto [text, said] = GENERATE_REF(table<std::string, std::string>(
      {{"", "it is not a JSON object with schema gxp.rank-plan/1"},
       {R"({"schema": "gxp.rank-plan/2"})", "it is not a JSON object with schema"},
       {head + R"("host_order": []})", "host_order has no hosts"},
       {head + R"("host_order": [0, 0]})", "host_order is not a permutation of 0 to 1"},
       {head + R"("host_order": [0], "x": 1})", "it has an unknown key, x"},
       {head + R"("ranks_of_hosts": [2], "rings": [[0, 1]]})", "it has no groups"},
       {head + R"("ranks_of_hosts": [2], "rings": [[0, 2]], "groups": []})", "a ring has 2;"},
       {head + R"("ranks_of_hosts": [2], "rings": [[0]], "groups": []})",
        "a ring is not a permutation"},
       {head + R"("ranks_of_hosts": [2], "rings": [[0, 1]], "groups": [0]})", "1 entries for 2"},
       {head + R"("ranks_of_hosts": [-2], "rings": [], "groups": []})", "ranks_of_hosts has -2"},
       {head + R"("ranks_of_hosts": [0], "rings": [], "groups": []})", "has 0 ranks"}}));
  CAPTURE(text);
  CHECK(complaint(ErrorKind::kCorrupt, [&, &text = text] {
          read_plan_file(text, "plan");
        }).find(said) != std::string::npos);
}

}  // namespace gxp

#include "lib/tools/topology/view/plan_report.h"

#include <nlohmann/json.hpp>

#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "tests/catch.h"

namespace gxp {
namespace {

nlohmann::json planned(Topology topology, size_t hosts) {
  topology.hosts.resize(hosts, topology.hosts[0]);
  return nlohmann::json::parse(to_json(plan_report(topology, plan_cluster(topology))));
}

}  // namespace

TEST_CASE("a plan over hosts says channels by name, hosts in order and what limits it",
          "[inspect]") {
  const auto json = planned(load_topology(GXP_TEST_DATA "/topo/oci-H100-topology.xml"), 3);
  CHECK(json["ring_gb_per_s"].get<double>() == Approx(360));
  CHECK(json["bound_gb_per_s"].get<double>() == Approx(360));
  CHECK(json["limit"].get<std::string>().find("(22.5 GB/s)") != std::string::npos);
  CHECK(json["channels"].size() == 16);
  CHECK(json["channels"][0]["nic"] == "mlx5_0");
  CHECK(json["channels"][0]["gpus"] == "GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7");
  REQUIRE(json["hosts"].size() == 3);
  CHECK(json["hosts"][0]["above_in_tree_0"].is_null());
}

TEST_CASE("of hosts of which only the network is known, the order is planned", "[inspect]") {
  Topology topology;
  topology.switches = {{.name = "top"}, {.name = "a", .above = 0}, {.name = "b", .above = 0}};
  for (const size_t leaf : {1, 2, 1, 2}) {
    topology.hosts.push_back(
        {.name = "n" + std::to_string(topology.hosts.size()), .leaves = {leaf}});
  }
  const auto json = planned(topology, 4);
  CHECK_FALSE(json.contains("channels"));
  CHECK(json["hops_between_switches"] == 2);
  CHECK(json["hops_between_switches_as_given"] == 4);
  CHECK(json["hosts"][1]["host"] == "n2");
}

}  // namespace gxp

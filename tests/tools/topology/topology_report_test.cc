#include "lib/tools/topology/view/topology_report.h"

#include <nlohmann/json.hpp>

#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "tests/catch.h"
#include "tests/unpacked.h"

namespace gxp {

TEST_CASE("programs get devices, paths and links of a topology", "[inspect]") {
  const Topology topology =
      load_topology(std::string(GXP_TEST_DATA) + "/topo/oci-H100-topology.xml");
  const auto json = nlohmann::json::parse(to_json(topology_report(topology)));
  size_t gpus = 0;
  for (const auto& device : json["devices"]) gpus += device["kind"] == "gpu" ? 1 : 0;
  CHECK(gpus == 8);
  CHECK(json["links"].size() == 32);
  CHECK(json["paths"].size() == 24 * 23);
  for (const auto& path : json["paths"]) {
    if (path["from"] != "GPU0" || path["to"] != "mlx5_0") continue;
    CHECK(path["type"] == "PIX");
    CHECK(path["bandwidth_gb_s"] == 22.5);
    CHECK(path["limiting_hop"] == "NIC 0000:0c:00.0 -> mlx5_0");
  }
}

TEST_CASE("programs get the cores and caches of NUMA nodes", "[inspect]") {
  const Topology topology = load_topology(
      Unpacked(std::string(GXP_TEST_DATA) + "/topo/hwloc/nvidia-dgx-gb10.tar.gz").path());
  const auto json = nlohmann::json::parse(to_json(topology_report(topology)));
  const auto& node = json["devices"][0];
  constexpr int64_t kKiB = 1024;
  CHECK(node["cores"] == 20);
  CHECK(node["caches"]["level"] == std::vector<int>{1, 2, 2, 3, 3});
  CHECK(node["caches"]["bytes"] ==
        std::vector<int64_t>{64 * kKiB, 512 * kKiB, 2048 * kKiB, 8192 * kKiB, 16384 * kKiB});
  CHECK(node["caches"]["count"] == std::vector<int>{20, 10, 10, 1, 1});
}

}  // namespace gxp

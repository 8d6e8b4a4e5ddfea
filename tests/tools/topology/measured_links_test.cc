#include "lib/tools/topology/view/measured_links.h"

#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/view/topology_picture.h"
#include "lib/tools/topology/view/tree_text.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

constexpr int kOnNode0 = 3;
constexpr int kOnNode1 = 60;
constexpr int kElsewhere = -1;

MeasuredLink link(int from_cpu, int to_cpu, double gb_per_s, const std::string& interface = "") {
  return {.from_cpu = from_cpu,
          .to_cpu = to_cpu,
          .transport = interface.empty() ? "shm" : "tcp",
          .latency_s = 2e-6,
          .gb_per_s = gb_per_s,
          .interface = interface,
          .link_gb_per_s = interface.empty() ? 0 : gb_per_s * 1.04};
}

}  // namespace

TEST_CASE("what was measured stands at the parts that it was measured from", "[inspect]") {
  Topology topology = load_topology("2xnuma:1");
  HostTree& host = *topology.trees[0];
  const std::vector<MeasuredLink> links = {
      link(kOnNode0, kOnNode0, 9),           link(kOnNode0, kOnNode0, 8),
      link(kOnNode0, kOnNode1, 5),           link(kOnNode0, kElsewhere, 40, "mlx5_0"),
      link(kElsewhere, kOnNode1, 1),         link(kElsewhere, kElsewhere, 1),
      link(kOnNode1, kElsewhere, 3, "bond7")};
  put_on(host, links);
  using Lines = std::vector<std::string>;
  CHECK(host[find_part(host, "NUMA0")].measured ==
        Lines{"shm within: 8 GB/s, 2 us, the slowest of 2", "shm to NUMA1: 5 GB/s, 2 us"});
  CHECK(host[find_part(host, "NUMA1")].measured.empty());
  CHECK(host[find_part(host, "mlx5_0")].measured ==
        Lines{"tcp to other hosts: 40 GB/s (41.6 with headers), 2 us; the port: 50 GB/s"});
  CHECK_THAT(host.notes.back(), Catch::StartsWith("bond7, by which") && Catch::Contains("3 GB/s"));

  const Table table = table_of(links, &host);
  const size_t ends = table.columns.size() - 2;
  CHECK(table.rows[2][ends] == Cell("NUMA0"));
  CHECK(table.rows[2][ends + 1] == Cell("NUMA1"));
  CHECK(table.rows[3][ends] == Cell("mlx5_0"));
  CHECK(table.rows[4][ends] == Cell());
  CHECK(table.rows[5][ends + 1] == Cell());
  for (const std::string& view : {tree_text(topology), to_svg(draw_topology(topology))}) {
    CHECK_THAT(view, Catch::Contains("measured: shm to NUMA1: 5 GB/s") &&
                         Catch::Contains("measured: tcp to other hosts: 40 GB/s"));
  }
}

}  // namespace gxp

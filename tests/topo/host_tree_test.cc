#include "lib/topo/model/host_tree.h"

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

PartId add_gpu(HostTree& host, PartId above, std::optional<int> number, std::string bus_id) {
  return host.add({.kind = PartKind::kGpu,
                   .above = above,
                   .bus_id = std::move(bus_id),
                   .info = GpuInfo{.number = number}});
}

PartId add_port(HostTree& host, PartId above, std::string name) {
  return host.add(
      {.kind = PartKind::kPort, .above = above, .info = PortInfo{.name = std::move(name)}});
}

TEST_CASE("parts are called by the driver's numbers if all have one of their own", "[topo]") {
  const bool numbered = GENERATE(true, false);
  HostTree host;
  const PartId node = host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{}});
  const PartId first = add_gpu(host, node, 5, "0000:3B:00.0");
  add_gpu(host, node, numbered ? std::optional(2) : std::nullopt, "0000:5e:00.0");
  CHECK(names_of_parts(host)[first] == (numbered ? "GPU5" : "GPU0"));
  CHECK(find_part(host, numbered ? "gpu5" : "gpu0") == first);
  CHECK(find_part(host, "0000:3b:00.0") == first);
  CHECK(find_part(host, "GPU7") == kNoPart);
}

TEST_CASE("two ports of one name are told apart, and NICn is the n-th", "[topo]") {
  HostTree host;
  const PartId nic = host.add({.kind = PartKind::kNic, .bus_id = "0000:18:00.0"});
  const PartId first = add_port(host, nic, "mlx5_0");
  const PartId second = add_port(host, nic, "mlx5_0");
  CHECK(names_of_parts(host)[first] == "mlx5_0");
  CHECK(names_of_parts(host)[second] == "mlx5_0.1");
  CHECK(find_part(host, "NIC1") == second);
  CHECK(host.all_of(PartKind::kPort) == std::vector<PartId>{first, second});
  CHECK(host.find_above(second, PartKind::kNic) == nic);
}

TEST_CASE("as many ports of one name as a tree holds are named without delay", "[topo]") {
  HostTree host;
  for (size_t i = 0; i < HostTree::kMaxParts; ++i) add_port(host, kNoPart, "mlx5_0");
  CHECK(names_of_parts(host).back() == "mlx5_0.16383");
}

TEST_CASE("a tree of hardware ends where its limits are", "[topo]") {
  HostTree host;
  PartId above = kNoPart;
  const auto nest = [&] {
    for (int i = 0; i <= HostTree::kMaxDepth; ++i)
      above = host.add({.kind = PartKind::kPcieSwitch, .above = above});
  };
  CHECK(complaint(ErrorKind::kConfig, nest) == "describe host : parts lie more than 40 deep");
}

}  // namespace
}  // namespace gxp

#include "lib/tools/topology/model/synthetic.h"

#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_paths.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {

TEST_CASE("machines by name have the paths that such machines have", "[topo]") {
  struct Row {
    std::string name;
    size_t gpus, ports;
    PathType between_gpus, to_first_nic;
    double nvlink_gb_per_s;
  };
  const auto [name, gpus, ports, between, to_nic, gb_per_s] =
      GENERATE(Row{"dgx-a100", 8, 8, PathType::kNvl, PathType::kPix, 240},
               Row{"dgx-h100", 8, 8, PathType::kNvl, PathType::kPix, 370.8},
               Row{"dgx-b200", 8, 8, PathType::kNvl, PathType::kPix, 721.8},
               Row{"azure-ndv4", 8, 8, PathType::kNvl, PathType::kPix, 240},
               Row{"aws-p5", 8, 32, PathType::kNvl, PathType::kPix, 370.8},
               Row{"ring:8", 8, 0, PathType::kSys, PathType::kDis, 0},
               Row{"mesh:5", 5, 0, PathType::kNvl, PathType::kDis, 41.2},
               Row{"nvswitch:16", 16, 0, PathType::kNvl, PathType::kDis, 370.8},
               Row{"pcie:4", 4, 1, PathType::kPhb, PathType::kPhb, 0},
               Row{"2xnuma:4", 8, 2, PathType::kSys, PathType::kPhb, 0});
  CAPTURE(name);
  REQUIRE(is_synthetic(name));
  const HostTree host = make_synthetic(name);
  const NcclPaths paths(host);
  REQUIRE(paths.gpus().size() == gpus);
  CHECK(paths.ports().size() == ports);
  const NcclPath far = paths.find(paths.gpus()[0], paths.gpus()[gpus / 2]);
  if (name != "ring:8") CHECK(far.type == between);
  if (gb_per_s > 0) CHECK(far.gb_per_s == Approx(gb_per_s));
  if (ports > 0) CHECK(paths.find(paths.gpus()[0], paths.ports()[0]).type == to_nic);
}

TEST_CASE("a machine by name is what NCCL would read of it", "[topo]") {
  const std::string name = GENERATE("dgx-h100", "ring:3", "2xnuma:2");
  const HostTree host = make_synthetic(name);
  const HostTree read = read_nccl_xml(write_nccl_xml(host), name);
  CHECK(read.notes.empty());
  CHECK(write_nccl_xml(read) == write_nccl_xml(host));
  const NcclPaths paths(host);
  const NcclPaths again(read);
  for (size_t i = 0; i < paths.gpus().size(); ++i) {
    const NcclPath one = paths.find(paths.gpus()[0], paths.gpus()[i]);
    const NcclPath other = again.find(again.gpus()[0], again.gpus()[i]);
    CHECK(one.type == other.type);
    CHECK(one.gb_per_s == other.gb_per_s);
  }
}

TEST_CASE("names of shapes with numbers that no host has are refused", "[topo]") {
  const std::string name = GENERATE("ring:0", "ring:1", "ring:", "ring:x", "ring:257", "ring:8x",
                                    "65xnuma:1", "0xnuma:1", "64xnuma:64", "ring:99999999999");
  REQUIRE(is_synthetic(name));
  CHECK(complaint(ErrorKind::kUsage, [&] { make_synthetic(name); }).find(name) !=
        std::string::npos);
}

TEST_CASE("names that are near a known one are not taken for it", "[topo]") {
  CHECK_FALSE(is_synthetic(
      GENERATE("dgx-h10", "ring", "ring8", "2xring:4", "numa:4", "xnuma:4", "./ring:8", "", ":")));
}

}  // namespace gxp

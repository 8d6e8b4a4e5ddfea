#include "lib/job/verbs_place.h"

#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/sysfs_host.h"
#include "tests/catch.h"
#include "tests/topo/planted_host.h"

using namespace gxp;

namespace {

VerbsPlace place(const PlantedHost& planted, const std::string& gpu) {
  return place_by_wiring(planted.root, read_system(planted.root), gpu);
}

using Ports = std::vector<std::string>;

}  // namespace

TEST_CASE("a rank that computes on a GPU uses the ports nearest to it, whatever its CPUs",
          "[job][verbs_place]") {
  PlantedHost planted = planted_gpu_host();
  planted.root.add_file("/proc/self/status", "Cpus_allowed_list:\t0-1\n");  // of the other node
  const VerbsPlace found = place(planted, "0000:3D:00.0");                  // as CUDA writes it
  CHECK(found.ports == Ports{"mlx5_0:1"});
  CHECK_FALSE(found.shares);
  REQUIRE(found.gpu_direct);
  CHECK(judge_gpu_direct(*found.gpu_direct).method == GpuDirectMethod::kUnknown);
  planted.root.add_file("/sys/module/nvidia/refcnt", "0");
  CHECK(judge_gpu_direct(*place(planted, "0000:3D:00.0").gpu_direct).method ==
        GpuDirectMethod::kNone);
}

TEST_CASE("a rank without a GPU shares the ports of its CPUs' NUMA node", "[job][verbs_place]") {
  PlantedHost planted = planted_gpu_host();
  planted.root.add_file("/proc/self/status", "Cpus_allowed_list:\t2\n");
  const VerbsPlace found = place(planted, "");
  CHECK(found.ports == Ports{"mlx5_0:1"});
  CHECK(found.shares);
  CHECK_FALSE(found.gpu_direct);
  planted.root.add_file("/proc/self/status", "Cpus_allowed_list:\t0-3\n");
  CHECK(place(planted, "").ports.empty());
}

TEST_CASE("a GPU that /sys does not show has no place", "[job][verbs_place]") {
  CHECK(place(planted_gpu_host(), "0000:99:00.0").why == "/sys does not show the GPU 0000:99:00.0");
}

#include "lib/topo/read/nvml.h"

#include "lib/base/error.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/sysfs_host.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"
#include "tests/topo/planted_host.h"

namespace gxp {
namespace {

HostTree host_with_fake_gpus() {
  HostTree host = read_system(planted_gpu_host().root);
  add_nvml(host, read_nvml(FAKE_NVML));
  return host;
}

const CrossLink& link_to(const HostTree& host, PartId from, std::string_view target) {
  static const CrossLink none;
  for (const CrossLink& link : host.cross_links()) {
    if (link.from == from && link.target == target) return link;
  }
  return none;
}

TEST_CASE("the driver tells which GPU is which", "[topo][nvml]") {
  const HostTree host = host_with_fake_gpus();
  const PartId id = host.find_bus("0000:3d:00.0");
  const auto& gpu = std::get<GpuInfo>(host[id].info);
  CHECK(gpu.number == 0);
  CHECK(gpu.compute_capability == 90);
  CHECK(gpu.model_name == "NVIDIA H100 80GB HBM3");
  CHECK(gpu.memory_bytes == 80ull << 30);
}

TEST_CASE("the driver tells the UUIDs of GPUs and of their MIG devices", "[topo][nvml]") {
  const HostTree host = host_with_fake_gpus();
  const auto& whole = std::get<GpuInfo>(host[host.find_bus("0000:3d:00.0")].info);
  const auto& sliced = std::get<GpuInfo>(host[host.find_bus("10000:01:00.0")].info);
  CHECK(whole.uuid == "GPU-00");
  CHECK(whole.slices.empty());
  CHECK_FALSE(whole.is_sliced);
  CHECK(sliced.is_sliced);
  CHECK(sliced.uuid == "GPU-01");
  CHECK(sliced.slices == std::vector<std::string>{"MIG-10", "MIG-12"});
}

TEST_CASE("NVLinks to one end are counted, those that are down are not", "[topo][nvml]") {
  const HostTree host = host_with_fake_gpus();
  const PartId first = host.find_bus("0000:3d:00.0");
  const PartId second = host.find_bus("10000:01:00.0");
  CHECK(link_to(host, first, "10000:01:00.0").count == 2);
  CHECK(link_to(host, first, "10000:01:00.0").to == second);
  CHECK(link_to(host, first, "0000:c1:00.0").count == 3);
  CHECK(link_to(host, first, "0000:c1:00.0").target_class == "0x068000");
  CHECK(link_to(host, second, "0000:3d:00.0").to == first);
  const CrossLink& chip = link_to(host, first, "");
  CHECK(chip.kind == CrossLinkKind::kChipToChip);
  CHECK(chip.to == host.find_above(first, PartKind::kNumaNode));
  CHECK(chip.count == 1);
  CHECK(chip.gb_per_s == 200);
}

TEST_CASE("GPUs that are lost, hidden or may not reach each other are noted", "[topo][nvml]") {
  const std::vector<std::string> notes = host_with_fake_gpus().notes;
  REQUIRE(notes.size() == 3);
  CHECK(notes[0].starts_with("GPU 1 (10000:01:00.0) is not below /sys/bus/pci"));
  CHECK(notes[1] == "GPU 2 does not answer NVML: GPU is lost");
  CHECK(notes[2] == "GPU 0 may not write GPU 1's memory: the driver's settings disable it");
}

TEST_CASE("without the driver's library there is one clear error", "[topo][nvml]") {
  const auto read = [] { read_nvml("libnvidia-ml-of-nobody.so"); };
  CHECK(
      complaint(ErrorKind::kUnavailable, read).starts_with("load NVML: libnvidia-ml-of-nobody.so"));
}

}  // namespace
}  // namespace gxp

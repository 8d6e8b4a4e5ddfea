#include "lib/topo/model/gpu_models.h"

#include "lib/topo/model/part.h"
#include "tests/catch.h"

namespace gxp {
namespace {

Part gpu_of(const std::string& device, const std::string& name = "",
            const std::string& vendor = "0x10de") {
  return {.kind = PartKind::kGpu,
          .identity = {.class_code = "0x030200", .vendor = vendor, .device = device},
          .info = GpuInfo{.model_name = name}};
}

}  // namespace

TEST_CASE("the PCI id of a GPU tells its compute capability", "[topo]") {
  const auto [device, capability] = GENERATE(table<std::string, int>({
      {"0x15f8", 60},   // P100
      {"0x1b38", 61},   // P40
      {"0x1db1", 70},   // V100
      {"0x1df6", 70},   // V100S
      {"0x1eb8", 75},   // T4
      {"0x2182", 75},   // GTX 1660 Ti
      {"0x20b0", 80},   // A100
      {"0x20f5", 80},   // A800
      {"0x20b7", 80},   // A30
      {"0x2204", 86},   // RTX 3090
      {"0x2230", 86},   // RTX A6000
      {"0x2235", 86},   // A40
      {"0x2237", 86},   // A10G
      {"0x25b6", 86},   // A2
      {"0x2330", 90},   // H100 SXM
      {"0x2331", 90},   // H100 PCIe
      {"0x2335", 90},   // H200
      {"0x2342", 90},   // GH200
      {"0x2684", 89},   // RTX 4090
      {"0x26b9", 89},   // L40S
      {"0x27b8", 89},   // L4
      {"0x2901", 100},  // B200
      {"0x2941", 100},  // GB200
      {"0x3182", 103},  // B300
      {"0x31c2", 103},  // GB300
      {"0x2b85", 120},  // RTX 5090
      {"0x2bb1", 120},  // RTX PRO 6000
      {"0x2e12", 121},  // GB10
  }));
  CAPTURE(device);
  CHECK(compute_capability_of(gpu_of(device)) == capability);
  CHECK_FALSE(compute_capability_of(gpu_of(device, "", "0x1002")).has_value());
  Part told = gpu_of(device);
  std::get<GpuInfo>(told.info).compute_capability = 99;
  CHECK(compute_capability_of(told) == 99);
}

TEST_CASE("GeForce and TITAN cards are told from professional ones", "[topo]") {
  const auto [device, name, is_consumer] = GENERATE(table<std::string, std::string, bool>({
      {"0x2684", "", true},
      {"0x2684", "NVIDIA GeForce RTX 4090", true},
      {"0x2204", "", true},  // RTX 3090
      {"0x1e04", "", true},  // RTX 2080 Ti
      {"0x1b06", "", true},  // GTX 1080 Ti
      {"0x2b85", "", true},  // RTX 5090
      {"0x1d81", "", true},  // TITAN V
      {"0x1e02", "NVIDIA TITAN RTX", true},
      {"0x9999", "NVIDIA GeForce RTX 9090", true},
      {"0x2230", "", false},  // RTX A6000
      {"0x2230", "NVIDIA RTX A6000", false},
      {"0x26b1", "NVIDIA RTX 6000 Ada Generation", false},
      {"0x1e30", "Quadro RTX 6000", false},
      {"0x1db1", "", false},  // V100
      {"0x1df6", "", false},  // V100S
      {"0x20b0", "", false},  // A100
      {"0x2330", "", false},  // H100
      {"0x2bb1", "", false},  // RTX PRO 6000
      {"0x26b9", "", false},  // L40S
      {"0x9999", "", false},
  }));
  CAPTURE(device, name);
  CHECK(is_consumer_gpu(gpu_of(device, name)) == is_consumer);
}

}  // namespace gxp

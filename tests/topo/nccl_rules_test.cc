#include "lib/topo/nccl/nccl_rules.h"

#include "lib/topo/model/part.h"
#include "tests/catch.h"

namespace gxp {

TEST_CASE("a PCIe speed is known by the start of its text, in NCCL's order", "[topo]") {
  const auto [text, lane_gb_per_s, known] = GENERATE(table<std::string, double, bool>({
      {"2.5 GT/s PCIe", 0.1875, true},
      {"5 GT/s", 0.375, true},
      {"16.0 GT/s PCIe", 1.5, true},
      {"32 GT/s PCIe/s", 3, true},  // as a cloud's file has it
      {"64.0 GT/s PCIe", 6, true},
      {"32.0 GT/s", 0.75, false},  // as a generator wrote it: silently 8 GT/s
      {"", 0.75, false},
  }));
  CAPTURE(text);
  CHECK(nccl_pcie_speed(text).lane_gb_per_s == lane_gb_per_s);
  CHECK(nccl_pcie_speed(text).known == known);
}

TEST_CASE("a PCIe link is as NCCL reads it, and also as what it is", "[topo]") {
  const PcieLink written{.now = {32, 16}, .speed_text = "32.0 GT/s", .width_text = "16"};
  CHECK(nccl_pcie_gb_per_s(written) == 12);
  CHECK(physical_pcie_gb_per_s(written) == Approx(63.015));
  // Idle now; NCCL reads what Linux says it can do.
  const PcieLink probed{.now = {2.5, 4}, .most = {16, 8}};
  CHECK(nccl_pcie_gb_per_s(probed) == 12);
  CHECK(physical_pcie_gb_per_s(probed) == Approx(15.754));
  CHECK(nccl_pcie_gb_per_s({}) == 12);
  CHECK(physical_pcie_gb_per_s({}) == 0);
}

TEST_CASE("a link between NUMA nodes is as wide as the processor's model says", "[topo]") {
  const auto [vendor, model, gb_per_s] =
      GENERATE(table<std::string, int, double>({{"GenuineIntel", 0x4F, 6},
                                                {"GenuineIntel", 0x55, 10},
                                                {"GenuineIntel", 0x8F, 22},
                                                {"GenuineIntel", 0xCF, 40},
                                                {"AuthenticAMD", 1, 16},
                                                {"  Shanghai  ", 0x5B, 6},
                                                {"unheard of", 1, kNcclLocalGbPerS}}));
  CAPTURE(vendor, model);
  const NumaNodeInfo node{.architecture = "x86_64", .vendor = vendor, .family = 6, .model = model};
  CHECK(nccl_inter_numa_gb_per_s(node) == gb_per_s);
}

}  // namespace gxp

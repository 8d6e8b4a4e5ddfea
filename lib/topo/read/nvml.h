// GPUs by NVIDIA's management library. It is loaded at run time: nothing links it, and
// nothing needs its header; what is declared in nvml.cc is the ABI that nvml.h has since driver
// 450.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gxp {

class HostTree;

enum class NvLinkEnd { kUnknown, kGpu, kSwitch, kCpu };

struct NvmlLink {
  NvLinkEnd end = NvLinkEnd::kUnknown;
  std::string bus_id{};  // of the other end; "": the driver hides it
};

struct NvmlGpu {
  int number = 0;
  std::string bus_id{};  // "0000:3b:00.0"
  std::string name{};
  uint64_t memory_bytes = 0;
  std::string uuid{};  // as GpuInfo has them
  std::vector<std::string> slices{};
  int compute_capability = 0;     // 90: sm_90
  std::vector<NvmlLink> links{};  // that are active
  int chip_to_chip_links = 0;
  double chip_to_chip_gb_per_s = 0;  // of each
};

struct NvmlFacts {
  std::string driver;  // "550.54.15"
  std::vector<NvmlGpu> gpus;
  std::vector<std::string> notes;  // on pairs of GPUs without peer access
};

// kUnavailable: there is no such library, it lacks a function, or it does not reach a driver.
NvmlFacts read_nvml(const std::string& file = "libnvidia-ml.so.1");

// Numbers, names and memory of the GPUs, and their links. A GPU that the tree lacks (a container
// without its /sys) is added below the first NUMA node, and a note says so.
void add_nvml(HostTree& host, const NvmlFacts& facts);

}  // namespace gxp

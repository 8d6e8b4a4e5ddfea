// Whether a NIC itself reads and writes the memory of an NVIDIA GPU (GPUDirect RDMA), by which
// method, and why (not). `gxp topo`, `gxp topo doctor` and the transport verbs take their verdicts
// from here.
//   Sources  NVIDIA, GPUDirect RDMA (CUDA Toolkit documentation); Linux 5.12, which lets RDMA take
//            DMA-BUF; NCCL 2.30.7, src/transport/net_ib/gdr.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gxp {

enum class GpuDirectMethod : uint8_t {
  kNone,
  kUnknown,     // the source does not say
  kDmaBuf,      // the GPU's driver hands its memory out as a file that the NIC's driver takes
  kPeerMemory,  // a module (nvidia_peermem) gives the GPU's pages to the NIC's driver
};

// The first members come from a host's files (read/sysfs_host.h); those that only a library
// can tell are empty if no library was asked.
struct GpuDirectFacts {
  bool modules_known = false;  // whether the loaded modules can be seen
  bool driver_is_open = false;
  bool linux_takes_dma_buf = false;
  std::string peer_module{};  // the loaded one; "": none
  bool peer_module_registered = false;
  std::optional<bool> nic_takes_dma_buf{};    // libibverbs
  std::optional<bool> gpu_exports_dma_buf{};  // CUDA
  std::string too_far{};  // the rule that forbids it between this GPU and NIC; "": none does
};

struct GpuDirectVerdict {
  GpuDirectMethod method = GpuDirectMethod::kUnknown;
  std::string why;  // "by DMA-BUF: open driver, Linux 5.12 or later"
  [[nodiscard]] bool is_on() const {
    return method == GpuDirectMethod::kDmaBuf || method == GpuDirectMethod::kPeerMemory;
  }
};

GpuDirectVerdict judge_gpu_direct(const GpuDirectFacts& facts);

}  // namespace gxp

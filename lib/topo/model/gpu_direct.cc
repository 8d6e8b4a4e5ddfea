#include "lib/topo/model/gpu_direct.h"

#include <fmt/format.h>

namespace gxp {
namespace {

// "": there is none.
std::string obstacle_to_dma_buf(const GpuDirectFacts& facts) {
  if (!facts.driver_is_open) return "the GPU's driver is not NVIDIA's open one";
  if (!facts.linux_takes_dma_buf) return "Linux is older than 5.12";
  if (facts.nic_takes_dma_buf == false) return "the NIC's driver takes none";
  if (facts.gpu_exports_dma_buf == false) return "CUDA exports none of this GPU's memory";
  return "";
}

}  // namespace

GpuDirectVerdict judge_gpu_direct(const GpuDirectFacts& facts) {
  if (!facts.too_far.empty()) return {GpuDirectMethod::kNone, facts.too_far};
  const std::string obstacle = obstacle_to_dma_buf(facts);
  if (obstacle.empty())
    return {GpuDirectMethod::kDmaBuf, "by DMA-BUF: open driver, Linux 5.12 or later"};
  if (facts.peer_module_registered)
    return {GpuDirectMethod::kPeerMemory,
            fmt::format("by {}, which is registered", facts.peer_module)};
  if (!facts.peer_module.empty())
    return {GpuDirectMethod::kNone,
            fmt::format("{} is loaded, but not registered with the RDMA driver "
                        "(/sys/kernel/mm/memory_peers is empty); no DMA-BUF: {}",
                        facts.peer_module, obstacle)};
  if (!facts.modules_known)
    return {GpuDirectMethod::kUnknown, "the loaded modules are not recorded (/sys/module)"};
  return {GpuDirectMethod::kNone,
          fmt::format("neither nvidia-peermem nor DMA-BUF is available ({})", obstacle)};
}

}  // namespace gxp

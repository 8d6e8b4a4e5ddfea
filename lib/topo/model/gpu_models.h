// Facts about an NVIDIA GPU from its PCI id and name, without its driver.
//   Sources  pci.ids of 2026-08-22: each chip has a block of 128 ids; NVIDIA, CUDA GPU compute
//            capability; NVIDIA, GPUDirect RDMA, which names Tesla and Quadro GPUs alone.
#pragma once

#include <optional>
#include <string_view>

namespace gxp {

struct Part;

// 90: sm_90. From the source, else from the PCI id; nothing: neither shows it.
std::optional<int> compute_capability_of(const Part& gpu);

// GeForce and TITAN cards: by the name, or without one by the PCI id.
bool is_consumer_gpu(const Part& gpu);
inline constexpr std::string_view kNoGpuDirectOnConsumerGpus =
    "NVIDIA offers no GPUDirect RDMA on GeForce and TITAN cards, whatever the driver";

}  // namespace gxp

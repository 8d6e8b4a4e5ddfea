// Which GPU of its host a rank has. Ranks take the GPUs in turn, and share them where there are
// more ranks than GPUs.
#pragma once

namespace gxp {

struct GpuShare {
  int index = 0;  // of the GPU, from 0
  int ranks = 1;  // that have it
};

// `gpus` > 0; ranks of a host are numbered from 0.
constexpr GpuShare gpu_share(int local_rank, int local_world_size, int gpus) {
  const int index = local_rank % gpus;
  return {index, (local_world_size - index + gpus - 1) / gpus};
}

}  // namespace gxp

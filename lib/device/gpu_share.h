// Which GPU of its host a rank has, and how many ranks have the same one.
//
// A rank takes GPU number `local_rank` modulo the count of those that it sees. It may see all GPUs
// of its host, or its own alone: launchers set CUDA_VISIBLE_DEVICES for each rank (Slurm's
// --gpus-per-task, Kubernetes, a MIG slice). A rank therefore cannot count how many ranks share its
// GPU; the ranks exchange the UUIDs of their GPUs (lib/job/gpu_ranks.h).
#pragma once

#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace gxp {

// `gpus` > 0; ranks of a host are numbered from 0.
constexpr int gpu_of_rank(int local_rank, int gpus) { return local_rank % gpus; }

// A rank's report, with names from DeviceSharing::identity().
struct RankGpu {
  std::string own;                // "": it computes on no GPU
  std::vector<std::string> seen;  // all GPUs that its driver shows it
  auto fields() { return std::tie(own, seen); }
};

// How many of the ranks have the GPU of `rank`, itself included; 1 without a GPU. Pure. Throws
// kConfig, the same on every rank, if some ranks share a GPU while one of them sees a GPU that no
// rank has: the launcher has not shown them GPUs by their local rank.
int ranks_on_gpu(std::span<const RankGpu> ranks, size_t rank);

}  // namespace gxp

#include "lib/device/gpu_share.h"

#include <algorithm>
#include <map>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"

namespace gxp {

int ranks_on_gpu(std::span<const RankGpu> ranks, size_t rank) {
  std::map<std::string, std::vector<size_t>> ranks_of;  // by GPU
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].own.empty()) ranks_of[ranks[i].own].push_back(i);
  }
  for (const auto& [gpu, sharing] : ranks_of) {
    if (sharing.size() == 1) continue;
    for (const size_t one : sharing) {
      const auto idle = std::ranges::find_if(
          ranks[one].seen, [&](const std::string& seen) { return !ranks_of.contains(seen); });
      if (idle == ranks[one].seen.end()) continue;
      fail(ErrorKind::kConfig,
           "assign GPUs by local rank: ranks {} would share {}, although rank {} also sees {}, "
           "which no rank uses; let the launcher show each rank its own GPU (srun "
           "--gpus-per-task=1), or all ranks of a host the same GPUs in CUDA_VISIBLE_DEVICES",
           joined(sharing, ", "), gpu, one, *idle);
    }
  }
  return ranks[rank].own.empty() ? 1 : int(ranks_of.at(ranks[rank].own).size());
}

}  // namespace gxp

#include "lib/job/gpu_ranks.h"

#include "lib/collective/communicator.h"
#include "lib/collective/gather_texts.h"
#include "lib/device/device_sharing.h"
#include "lib/device/gpu_share.h"
#include "lib/net/store/facts.h"

namespace gxp {

int count_ranks_on(Device& gpu, Communicator& communicator) {
  const DeviceSharing* const sharing = gpu.sharing();
  const RankGpu mine =
      sharing == nullptr ? RankGpu{} : RankGpu{sharing->identity(), sharing->visible()};
  const auto ranks = exchange_facts(
      mine, [&](const std::string& text) { return gather_texts(communicator, text); });
  return ranks_on_gpu(ranks, size_t(communicator.rank()));
}

}  // namespace gxp

// Bootstraps NCCL's ranks.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/engine/nccl/nccl_library.h"
#include "lib/net/store/store.h"
#include "lib/transport/context.h"

namespace gxp {

// The unique id by which NCCL bootstraps: rank 0 makes it and the others get it from the store.
NcclUniqueId exchange_unique_id(const NcclLibrary& library, Store& store, Deadline deadline);
NcclUniqueId make_unique_id(const NcclLibrary& library);

// Facts that a rank reports before NCCL starts, because NCCL reports such errors late or hangs.
struct NcclRankFacts {
  std::string host;     // host_identity()
  std::string gpu;      // its name on the host; "": host memory is used instead
  std::string version;  // NCCL's
  auto fields() { return std::tie(host, gpu, version); }
};
// Pure. kUnavailable: ranks share a GPU, or their NCCLs differ, with the ranks and what to do.
// `may_share`: NCCL_MULTI_RANK_GPU_ENABLE is set and the version knows it.
void check_nccl_ranks(const std::vector<NcclRankFacts>& facts, bool may_share);

// Every rank's facts, checked; returns the host of each rank as number_hosts() does.
std::vector<int> bootstrap_nccl_ranks(const NcclRankFacts& mine, const NcclLibrary& library,
                                      const TransportContext& ranks);

}  // namespace gxp

#include "lib/collective/engine/nccl/nccl_join.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "lib/base/error.h"
#include "lib/collective/engine/nccl/nccl_versions.h"
#include "lib/net/store/facts.h"

namespace gxp {

NcclUniqueId make_unique_id(const NcclLibrary& library) {
  NcclUniqueId id{};
  library.check(library.functions().get_unique_id(&id), "make NCCL's unique id");
  return id;
}

NcclUniqueId exchange_unique_id(const NcclLibrary& library, Store& store, Deadline deadline) {
  NcclUniqueId id{};
  const auto make = [&] {
    id = make_unique_id(library);
    return std::string(id.bytes, sizeof id.bytes);
  };
  const std::string bytes = store.from_rank_0("NCCL's unique id", make, deadline);
  if (bytes.size() != sizeof id.bytes)
    fail(ErrorKind::kPeer, "take NCCL's unique id from rank 0: it has {} bytes, not {}",
         bytes.size(), sizeof id.bytes);
  std::memcpy(id.bytes, bytes.data(), bytes.size());
  return id;
}

void check_nccl_ranks(const std::vector<NcclRankFacts>& facts, bool may_share) {
  std::map<std::pair<std::string, std::string>, size_t> owners;  // (host, GPU): rank
  for (size_t rank = 0; rank < facts.size(); ++rank) {
    const NcclRankFacts& own = facts[rank];
    if (own.version != facts[0].version)
      fail(ErrorKind::kUnavailable,
           "join NCCL's ranks: rank {} has NCCL {}, rank 0 has {}; give all hosts one version",
           rank, own.version, facts[0].version);
    if (own.gpu.empty()) continue;
    const auto [first, is_new] = owners.try_emplace({own.host, own.gpu}, rank);
    if (!is_new && !may_share)
      fail(ErrorKind::kUnavailable,
           "join NCCL's ranks: ranks {} and {} share GPU {} of their host, and NCCL {} needs a GPU "
           "for each rank (2.30.3 and newer share one with NCCL_MULTI_RANK_GPU_ENABLE=1); start at "
           "most as many ranks on a host as it has GPUs, or use comm.engine = \"native\"",
           first->second, rank, own.gpu, own.version);
  }
}

std::vector<int> bootstrap_nccl_ranks(const NcclRankFacts& mine, const NcclLibrary& library,
                                      const TransportContext& ranks) {
  const std::vector<NcclRankFacts> facts =
      exchange_facts(mine, *ranks.store, "NCCL's ranks", ranks.deadline);
  const char* const enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  check_nccl_ranks(facts, has(library.version(), NcclFeature::kSharedGpu) && enabled != nullptr &&
                              std::string_view(enabled) == "1");
  Hosts hosts;
  for (const NcclRankFacts& rank : facts) hosts.push_back(rank.host);
  return number_hosts(hosts);
}

}  // namespace gxp

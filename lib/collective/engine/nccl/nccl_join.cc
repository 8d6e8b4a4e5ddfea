#include "lib/collective/engine/nccl/nccl_join.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "lib/base/error.h"
#include "lib/collective/engine/nccl/nccl_versions.h"

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

std::vector<int> meet_nccl_ranks(const NcclRankFacts& mine, const NcclLibrary& library,
                                 const TransportContext& ranks) {
  const auto told = [&](std::string_view what, const std::string& value) {
    return ranks.store->gather(fmt::format("{} of NCCL's ranks", what), value, ranks.deadline);
  };
  const Hosts hosts = told("hosts", mine.host);
  const auto gpus = told("GPUs", mine.gpu);
  const auto versions = told("versions", mine.version);
  std::vector<NcclRankFacts> facts;
  for (size_t rank = 0; rank < hosts.size(); ++rank)
    facts.push_back({hosts[rank], gpus[rank], versions[rank]});
  const char* const enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  check_nccl_ranks(facts, has(library.version(), NcclFeature::kSharedGpu) && enabled != nullptr &&
                              std::string_view(enabled) == "1");
  return number_hosts(hosts);
}

std::vector<int> ranks_of_color(int color, const std::vector<SplitWish>& wishes) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < wishes.size(); ++rank)
    if (wishes[rank].color == color) ranks.push_back(int(rank));
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return wishes[size_t(rank)].key; });
  return ranks;
}

}  // namespace gxp

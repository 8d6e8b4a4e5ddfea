#include "lib/collective/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/near_match.h"

namespace gxp {
namespace {

// From here on the ring's balanced traffic outweighs its 2(p - 1) rounds against 2 log2 p: a chunk
// then takes longer to move than a message to start (64 KiB is some 10 us at 6 GB/s).
constexpr size_t kRingChunkBytes = 64 << 10;

Choice choose_by_size(Collective collective, int world_size, size_t bytes) {
  const size_t chunk_bytes = bytes / static_cast<size_t>(world_size);
  if (chunk_bytes >= kRingChunkBytes) {
    return {find_algorithm("ring", collective), "least bytes; chunks of 64 KiB or more"};
  }
  return {find_algorithm("halving-doubling", collective), "fewest rounds; chunks below 64 KiB"};
}

}  // namespace

Choice choose_algorithm(Collective collective, int world_size, size_t bytes,
                        std::string_view wanted, bool layout_invariant) {
  if (collective == Collective::kBroadcast) return {find_algorithm("binomial", collective), "only"};
  if (collective == Collective::kBarrier) {
    return {find_algorithm("dissemination", collective), "only"};
  }
  if (wanted != "auto") return {find_algorithm(wanted, collective), "asked for"};
  if (layout_invariant && collective != Collective::kAllGather) {
    return {find_algorithm("halving-doubling", collective), "layout-invariant"};
  }
  return choose_by_size(collective, world_size, bytes);
}

void check_algorithm_name(std::string_view wanted) {
  std::vector<std::string> names = {"auto"};
  for (const Algorithm& row : algorithms()) {
    if (row.collective == Collective::kAllReduce) names.emplace_back(row.name);
  }
  for (const std::string& name : names) {
    if (name == wanted) return;
  }
  fail(ErrorKind::kConfig, "choose algorithm '{}': there is none of that name; use one of: {}{}",
       wanted, fmt::join(names, ", "), did_you_mean(wanted, names));
}

}  // namespace gxp

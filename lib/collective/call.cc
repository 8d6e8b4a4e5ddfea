#include "lib/collective/call.h"

#include <fmt/format.h>

#include <array>

#include "lib/base/hash.h"

namespace gxp {
namespace {

bool reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
}

}  // namespace

std::string to_string(const Call& call) {
  std::string name = fmt::format("{} {}", to_string(call.collective), call.sequence);
  if (call.collective == Collective::kBarrier) return name;
  const std::string what = fmt::format("{} ({} {}", name, call.count, to_string(call.dtype));
  if (reduces(call.collective)) return fmt::format("{}, {})", what, to_string(call.op));
  if (call.collective == Collective::kBroadcast) {
    return fmt::format("{} from rank {})", what, call.root);
  }
  return what + ")";
}

Tag tag_of(const Call& call, const Algorithm& algorithm) {
  const std::array<uint64_t, 6> agreed = {
      static_cast<uint64_t>(call.collective), static_cast<uint64_t>(call.dtype),
      static_cast<uint64_t>(call.op),         call.count,
      static_cast<uint64_t>(call.root),       hash64(std::as_bytes(std::span(algorithm.name)))};
  const uint64_t hash = hash64(std::as_bytes(std::span(agreed)));
  return (call.sequence & 0xffffu) << 16 | static_cast<Tag>(hash & 0xffffu);
}

}  // namespace gxp

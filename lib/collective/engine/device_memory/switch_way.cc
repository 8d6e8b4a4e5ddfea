#include "lib/collective/engine/device_memory/switch_way.h"

namespace gxp {

bool SwitchWay::suits(const Call& call, int ranks) {
  if (ranks < kLeastRanks) return false;
  switch (call.collective) {
    case Collective::kAllReduce:
      return switch_reduces(call.op, call.dtype) && call.bytes() >= kLeastBytes * size_t(ranks);
    case Collective::kBroadcast:
      return call.bytes() >= kLeastBytes;
    default:
      return false;
  }
}

// A share has whole cache lines, but for the last, whose rest is too small for the switch.
void SwitchWay::move(const Invocation& inv, const RankBuffers& buffers, const Addresses& common) {
  const bool is_sum = inv.call.collective == Collective::kAllReduce;
  const Range part = is_sum ? inv.shape.shares[size_t(inv.rank)] : inv.part_of(inv.rank);
  const size_t rest = part.count % DeviceFolds::kSwitchBytes;
  const size_t whole = part.count - rest;
  if (is_sum)
    mover_.fold_in_switch(inv.call, common.output + part.begin, common.input + part.begin, whole);
  else if (whole > 0)
    mover_.store_by_switch(common.output, inv.input({0, whole}), whole);
  if (rest > 0) direct_.move_range(inv, buffers, {part.begin + whole, rest});
}

}  // namespace gxp

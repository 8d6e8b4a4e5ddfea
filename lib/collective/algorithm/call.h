// One call of a collective operation: what all ranks of the group must agree on, and what a caller
// says about its memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"
#include "lib/collective/algorithm/algorithm.h"
#include "lib/device/memory.h"
#include "lib/transport/transport.h"

namespace gxp {

struct Call {
  Collective collective = Collective::kBarrier;
  DType dtype = DType::kU8;
  ReduceOp op = ReduceOp::kSum;
  double factor = 1;  // kPreMulSum: of this rank's input; need not be the same on all ranks
  size_t count = 0;   // elements of the logical buffer (algorithm.h)
  int root = 0;
  uint32_t sequence = 0;  // how many calls the communicator has had before; set by it
  [[nodiscard]] size_t bytes() const { return count * size_of(dtype); }  // of the logical buffer
};

// The origin of a call's memory: peers on the same host can access memory from
// Communicator::allocate().
enum class MemoryOrigin : uint8_t { kCommunicator, kOrdinary };
inline constexpr std::array<std::string_view, 2> kMemoryOriginNames = {"communicator", "ordinary"};
inline constexpr std::array kMemoryOrigins = {MemoryOrigin::kCommunicator, MemoryOrigin::kOrdinary};

// Whether they differ in nothing but factor and sequence.
inline bool same_signature(const Call& a, const Call& b) {
  return a.count == b.count && a.collective == b.collective && a.dtype == b.dtype && a.op == b.op &&
         a.root == b.root;
}

// "all-reduce 17 (4096 f32, sum)", "broadcast 3 (16 u8 from rank 0)".
std::string to_string(const Call& call);

// Which elements of the logical buffer a rank's input and output hold; empty: not used on this
// rank. In place means that both are parts of one buffer: output.data - output.begin is
// input.data - input.begin.
struct Extents {
  Range input;
  Range output;
};
Extents extents_of(const Call& call, int rank, int world_size);

// A call and this rank's memory for it, of the sizes of extents_of().
struct PlacedCall {
  Call call;
  ConstMemory input;
  Memory output;
};
// In place: `data` is the whole logical buffer, and says its count.
inline PlacedCall in_place(Call call, Memory data, int rank, int world_size) {
  const size_t element_bytes = size_of(call.dtype);
  GXP_ASSERT(data.bytes % element_bytes == 0);
  call.count = data.bytes / element_bytes;
  const Extents extents = extents_of(call, rank, world_size);
  const auto part = [&](Range range) {
    return data.slice(range.begin * element_bytes, range.count * element_bytes);
  };
  return {call, part(extents.input), part(extents.output)};
}

// A call to be timed: about `bytes` of floats, as many for each rank, summed where it reduces.
Call trial_call(Collective collective, size_t bytes, int world_size);

// What messages carry. A collective's: 7 bits of the group, 24 of the sequence, 32 of a hash of
// the rest and of the plan. The messages of consecutive calls therefore never mix, and ranks that
// make different calls, even of equal size, never receive each other's bytes: their messages do not
// match. For send and recv: the group and the number of the message between these two ranks.
Tag tag_of(const Call& call, const Algorithm& algorithm, int channels, size_t segment_bytes,
           int group);
Tag message_tag(uint32_t number, int group);
// Whether two tags are of collectives with the same group and sequence.
bool same_call_number(Tag a, Tag b);
inline constexpr int kMaxGroups = 128;

}  // namespace gxp

// One call among ranks that share memory: what follows from the call alone, which is worth keeping
// since callers repeat their calls, and the call as it runs on this rank. All ranges are bytes of
// the logical buffer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/range.h"
#include "lib/collective/algorithm/call.h"
#include "lib/device/memory.h"
#include "lib/transport/arena/shared_lines.h"

namespace gxp {

struct SharedCall {
  // Holds for all calls with the same signature.
  SharedCall(const Call& call, int world_size);
  // The content of a rank's line: the number of earlier calls, and a hash of this call and its
  // memory.
  [[nodiscard]] uint64_t stamp(uint32_t sequence, uint32_t call_index,
                               MemorySpace space = MemorySpace::kHost) const;

  Call call;
  // By rank:
  std::vector<Range> inputs;
  std::vector<Range> outputs;
  // The part that a rank folds, gives or gets; whole cache lines if all of the buffer is folded.
  std::vector<Range> parts;
  std::vector<Range> shares;  // of the whole buffer, in whole cache lines
  size_t largest_input = 0;
  uint64_t hash = 0;
  std::string_view algorithm;  // which row of the table this is
};

// A call that runs, with this rank's buffers.
struct Invocation {
  const Call& call;
  const SharedCall& shape;
  int rank = 0;
  uint32_t index = 0;  // GroupSync::begin()
  uint64_t stamp = 0;
  const std::byte* input_data = nullptr;
  std::byte* output_data = nullptr;
  Deadline deadline;
  MemorySpace space = MemorySpace::kHost;

  [[nodiscard]] size_t bytes() const { return call.count * size_of(call.dtype); }
  [[nodiscard]] Range own_input() const { return shape.inputs[size_t(rank)]; }
  [[nodiscard]] Range own_output() const { return shape.outputs[size_t(rank)]; }
  [[nodiscard]] Range part_of(int other) const { return shape.parts[size_t(other)]; }
  [[nodiscard]] const std::byte* input(Range range) const {
    return input_data + (range.begin - own_input().begin);
  }
  [[nodiscard]] std::byte* output(Range range) const {
    return output_data + (range.begin - own_output().begin);
  }
  [[nodiscard]] bool in_place(Range range) const { return input(range) == output(range); }
  // Inputs are scaled before they are folded, so never folded where they are.
  [[nodiscard]] bool is_scaled() const {
    return call.op == ReduceOp::kPreMulSum && reduces(call.collective);
  }
  // Takes about 10 us if no rank is late.
  [[nodiscard]] bool is_quick() const { return shape.largest_input <= size_t{64} << 10; }
};

// Whether a stamp is of this call or a later one; indices wrap around.
constexpr bool has_reached(uint64_t stamp, uint32_t call_index) {
  return int32_t(uint32_t(stamp >> 32) - call_index) > 0;
}

// "all-reduce 17 (4096 f32, sum) in device memory"
std::string to_string(const Call& call, MemorySpace space);
// All that ranks must agree on, for a peer that expected another call, who reads it as text.
void write_note(const Invocation& inv, SharedSlots& slots);
std::string read_note(const SharedSlots& slots, uint32_t call_index);

}  // namespace gxp

// What follows from a call alone, for a rank that shares memory with the others
// (shared_executor.h). Callers repeat their calls, so it is worth keeping. All ranges are bytes of
// the logical buffer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/range.h"
#include "lib/collective/algorithm/call.h"
#include "lib/transport/arena/shared_space.h"

namespace gxp {

struct SharedCall {
  // Holds for all calls that are alike.
  SharedCall(const Call& call, int world_size);
  // What a line says: how many calls came before here, and a hash of this one.
  [[nodiscard]] uint64_t word(uint32_t sequence, uint32_t turn) const;

  Call call;
  // By rank:
  std::vector<Range> inputs;
  std::vector<Range> outputs;
  // What a rank folds, or gives, or gets; whole cache lines where all of the buffer is folded.
  std::vector<Range> parts;
  std::vector<Range> shares;  // of the whole buffer, in whole cache lines
  size_t largest_input = 0;
  uint64_t hash = 0;
  std::string_view algorithm;  // which row of the table this is
};

// Whether `word` is of this turn or a later one; turns wrap around.
constexpr bool has_reached(uint64_t word, uint32_t turn) {
  return int32_t(uint32_t(word >> 32) - turn) > 0;
}

// All that ranks must agree on, beside a line: for whoever expected another call. Turns count as
// the lines do.
void write_note(const Call& call, uint32_t turn, SharedSlots& slots);
Call read_note(const SharedSlots& slots, uint32_t turn);

}  // namespace gxp

// One call of a collective operation: what all ranks of the group must agree on.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"
#include "lib/collective/algorithm.h"
#include "lib/transport/transport.h"

namespace gxp {

struct Call {
  Collective collective = Collective::kBarrier;
  DType dtype = DType::kU8;
  ReduceOp op = ReduceOp::kSum;
  size_t count = 0;  // elements
  int root = 0;
  uint32_t sequence = 0;  // how many calls the communicator has had before
};

// "all-reduce 17 (4096 f32, sum)", "broadcast 3 (16 u8 from rank 0)".
std::string to_string(const Call& call);

// All messages of a call carry this tag: 16 bits of the sequence, 16 bits of a hash of the rest and
// of the algorithm. So the messages of consecutive calls never mix, and ranks that call different
// things, even of equal size, never take each other's bytes: their messages do not match. Rejected:
// a first message that describes the call. It would double the messages of a small all-reduce and
// show in the transport's counters, which are to be those of the formula.
Tag tag_of(const Call& call, const Algorithm& algorithm);

}  // namespace gxp

// How a buffer is cut for a collective of ranks of several hosts whose parts travel between the
// hosts in a codec (compressed_sum.h, compressed_gather.h). Pure.
//
//   Within a host  ranks reduce or gather ranges of the buffer together; each has one chunk of each
//                  range.
//   Between hosts  the ranks of the same place hold the same chunks, cut into a part for each host.
// All hosts have equally many ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/base/range.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/compress/codec.h"

namespace gxp {

// The place of a rank among them.
struct HostPlace {
  int hosts = 1;
  int ranks_of_host = 1;
  int host = 0;
  int index = 0;  // of the host's ranks

  [[nodiscard]] size_t ranks() const { return size_t(hosts) * size_t(ranks_of_host); }
};

struct CompressedShape {
  // kAllReduce; or kReduceScatter or kAllGather, for which ranks must be numbered host by host, and
  // `count` be a multiple of their number.
  Collective collective = Collective::kAllReduce;
  size_t count = 0;
  size_t piece_count = 0;  // elements of an all-reduce in flight at a time: unit of pipelining

  friend bool operator==(const CompressedShape&, const CompressedShape&) = default;
};

// That of a call of a training step.
CompressedShape compressed_shape(const Call& call);

// What travels together.
struct HostPiece {
  std::vector<Range> within_host;
  std::vector<Range> parts;  // by host: what the rank of this place there sums, or has
  size_t residual = 0;       // where the parts' residuals begin, in the order of `parts`
};

// Pieces that are in different stages of a call at the same time.
inline constexpr size_t kPiecesInFlight = 5;

// A reduce-scatter or an all-gather is one piece, since each rank's chunk is one part. The pieces of an all-reduce
// are multiples of the number of ranks, if `count` is.
std::vector<HostPiece> cut_for_hosts(const CompressedShape& shape, const HostPlace& place);

// Bytes of the slots of such a call, which hold the encoded parts that are in flight; 0 on one host.
// As many on each rank of the same index.
size_t slots_bytes(const Codec& codec, const CompressedShape& shape, const HostPlace& place);

// Elements of the largest part.
size_t largest_part(const std::vector<HostPiece>& pieces);

// Elements of all parts of this place: as many for each place if the number of ranks divides
// `count`.
size_t elements_of_parts(const std::vector<HostPiece>& pieces);

}  // namespace gxp

#include "lib/collective/compress/host_parts.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/collective/algorithm/algorithm.h"

namespace gxp {
namespace {

// Chunk h * ranks_of_host + index is of the rank at that place of host h.
HostPiece cut_by_rank(size_t count, const HostPlace& place) {
  GXP_ASSERT(count % place.ranks() == 0);
  const size_t chunk = count / place.ranks();
  const size_t of_host = chunk * size_t(place.ranks_of_host);
  HostPiece piece;
  for (int host = 0; host < place.hosts; ++host) {
    const size_t begin = size_t(host) * of_host;
    piece.within_host.push_back({begin, of_host});
    piece.parts.push_back({begin + size_t(place.index) * chunk, chunk});
  }
  return piece;
}

HostPiece cut_for_all(const Range& all, const HostPlace& place) {
  HostPiece piece{.within_host = {all}, .parts = {}};
  const Range own = Chunks(all.count, place.ranks_of_host)[place.index];
  for (int host = 0; host < place.hosts; ++host) {
    const Range part = Chunks(own.count, place.hosts)[host];
    piece.parts.push_back({all.begin + own.begin + part.begin, part.count});
  }
  return piece;
}

}  // namespace

CompressedShape compressed_shape(const Call& call) {
  constexpr size_t kPieceBytes = size_t{4} << 20;  // as CompressionOptions has it
  return {call.collective, call.count, kPieceBytes / size_of(call.dtype)};
}

std::vector<HostPiece> cut_for_hosts(const CompressedShape& shape, const HostPlace& place) {
  if (shape.count == 0) return {};
  if (shape.collective != Collective::kAllReduce) return {cut_by_rank(shape.count, place)};
  const size_t quantum = place.ranks() * kCodecBlock;
  const size_t most = std::max(quantum, shape.piece_count / quantum * quantum);
  std::vector<HostPiece> pieces;
  size_t residual = 0;
  for (size_t begin = 0; begin < shape.count; begin += most) {
    pieces.push_back(cut_for_all({begin, std::min(most, shape.count - begin)}, place));
    pieces.back().residual = residual;
    for (const Range& part : pieces.back().parts) residual += part.count;
  }
  return pieces;
}

size_t slots_bytes(const Codec& codec, const CompressedShape& shape, const HostPlace& place) {
  if (place.hosts == 1) return 0;
  const std::vector<HostPiece> pieces = cut_for_hosts(shape, place);
  // Of a piece: what leaves and what arrives, which of an all-gather lie side by side; an all-reduce
  // also has the sums.
  const size_t slots = shape.collective == Collective::kAllReduce   ? 3
                       : shape.collective == Collective::kAllGather ? 1
                                                                    : 2;
  return std::min(kPiecesInFlight, pieces.size()) * slots * size_t(place.hosts) *
         codec.wire_bytes(largest_part(pieces));
}

size_t largest_part(const std::vector<HostPiece>& pieces) {
  size_t most = 0;
  for (const HostPiece& piece : pieces)
    for (const Range& part : piece.parts) most = std::max(most, part.count);
  return most;
}

size_t elements_of_parts(const std::vector<HostPiece>& pieces) {
  if (pieces.empty()) return 0;
  size_t count = pieces.back().residual;
  for (const Range& part : pieces.back().parts) count += part.count;
  return count;
}

}  // namespace gxp

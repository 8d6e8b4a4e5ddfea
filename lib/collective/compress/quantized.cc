#include "lib/collective/compress/quantized.h"

#include <algorithm>
#include <cstring>

#include "kernels/reduce_op.h"
#include "lib/collective/compress/float_tiles.h"

namespace gxp {
namespace {

// Elements that are decoded, summed and encoded while they lie in the first-level cache.
constexpr size_t kTile = 2048;
static_assert(kTile % kCodecBlock == 0);

size_t largest_part(const std::vector<Range>& parts) {
  size_t most = 0;
  for (const Range& part : parts) most = std::max(most, part.count);
  return most;
}

// fn(offset, count) for each tile of `count` elements.
template <class Fn>
void for_each_tile(size_t count, const Fn& fn) {
  for (size_t offset = 0; offset < count; offset += kTile)
    fn(offset, std::min(kTile, count - offset));
}

}  // namespace

QuantizedCollectives::QuantizedCollectives(const Codec& codec, const CompressionOptions& options,
                                           const BufferShape& shape, HostGroups& groups,
                                           Device& device)
    : codec_(codec),
      options_(options),
      shape_(shape),
      groups_(groups),
      pieces_(contiguous_pieces()),
      chunk_pieces_(chunk_pieces()) {
  if (shape.dtype != DType::kF32 && shape.dtype != DType::kF16 && shape.dtype != DType::kBF16) {
    fail(ErrorKind::kUnavailable, "{} of {}: codecs take f32, f16 and bf16", codec.name,
         to_string(shape.dtype));
  }
  number_residuals(pieces_);
  number_residuals(chunk_pieces_);
  allocate(device);
}

// ---- The cut

std::vector<QuantizedCollectives::Piece> QuantizedCollectives::contiguous_pieces() const {
  const size_t bytes = shape_.count * size_of(shape_.dtype);
  const auto count = static_cast<int>((bytes + options_.piece_bytes - 1) / options_.piece_bytes);
  std::vector<Piece> pieces;
  for (int i = 0; i < count; ++i) {
    Piece piece;
    piece.all = Chunks(shape_.count, count)[i];
    const Range own = Chunks(piece.all.count, groups_.within->world_size())[groups_.within->rank()];
    for (int host = 0; host < hosts(); ++host) {
      const Range part = Chunks(own.count, hosts())[host];
      piece.parts.push_back({piece.all.begin + own.begin + part.begin, part.count});
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::vector<QuantizedCollectives::Piece> QuantizedCollectives::chunk_pieces() const {
  const auto count = static_cast<int>(pieces_.size());
  const int within = groups_.within->world_size();
  const Chunks chunks(shape_.count, within * hosts());
  std::vector<Piece> pieces;
  for (int i = 0; i < count; ++i) {
    Piece piece;
    for (int host = 0; host < hosts(); ++host) {
      const Range chunk = chunks[host * within + groups_.within->rank()];
      const Range part = Chunks(chunk.count, count)[i];
      piece.parts.push_back({chunk.begin + part.begin, part.count});
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

void QuantizedCollectives::number_residuals(std::vector<Piece>& pieces) const {
  size_t sent = 0;
  size_t summed = 0;
  for (Piece& piece : pieces) {
    piece.sent_residual = sent;
    piece.sum_residual = summed;
    for (const Range& part : piece.parts) sent += part.count;
    summed += piece.parts[static_cast<size_t>(host())].count;
  }
}

void QuantizedCollectives::allocate(Device& device) {
  if (hosts() == 1) return;  // nothing is encoded
  size_t sent = 0;
  size_t summed = 0;
  for (const auto* pieces : {&pieces_, &chunk_pieces_}) {
    for (const Piece& piece : *pieces) {
      const size_t most = largest_part(piece.parts);
      slot_bytes_ = std::max(slot_bytes_, codec_.wire_bytes(most));
      sent = std::max(sent, piece.sent_residual + most * static_cast<size_t>(hosts()));
      summed = std::max(summed, piece.sum_residual + most);
    }
  }
  slots_ = device.allocate(3 * kFlights * exchanged_bytes(), MemoryKind::kCommunication);
  size_t at = 0;
  for (Flight& flight : flights_) {
    for (Memory* slots : {&flight.leaving, &flight.arriving, &flight.sums}) {
      *slots = slots_.memory().slice(at, exchanged_bytes());
      at += exchanged_bytes();
    }
  }
  if (!options_.error_feedback) return;
  sent_residual_ = device.allocate(sent * sizeof(float), MemoryKind::kCommunication);
  sum_residual_ = device.allocate(summed * sizeof(float), MemoryKind::kCommunication);
}

// ---- The collectives

void QuantizedCollectives::all_reduce(Memory data, ReduceOp op) {
  begin(data, op);
  if (hosts() == 1) return groups_.within->all_reduce(data, shape_.dtype, op);
  guard([&] {
    // Pieces follow one another through the stages; all ranks start what they start in this order.
    for (size_t i = 0; i < pieces_.size() + kFlights - 1; ++i) {
      const auto stage = [&](size_t behind, auto act) {
        if (behind <= i && i - behind < pieces_.size())
          act(pieces_[i - behind], flight(i - behind));
      };
      stage(0, [&](const Piece& piece, Flight& in) { start_within(piece, in); });
      stage(1, [&](const Piece& piece, Flight& in) { start_scatter(piece, in); });
      stage(2, [&](const Piece& piece, Flight& in) { start_gather_of_sums(piece, in); });
      stage(3, [&](const Piece& piece, Flight& in) { finish_gather(piece, in); });
      stage(4, [&](const Piece&, Flight& in) { in.within.wait(); });
    }
  });
}

void QuantizedCollectives::reduce_scatter(Memory data, ReduceOp op) {
  begin(data, op);
  require_order("reduce-scatter");
  if (hosts() == 1) return groups_.within->reduce_scatter(data, shape_.dtype, op);
  guard([&] {
    for_each_host_range(
        [&](Memory range) { groups_.within->reduce_scatter(range, shape_.dtype, ReduceOp::kSum); });
    for (size_t i = 0; i < chunk_pieces_.size() + 1; ++i) {
      if (i < chunk_pieces_.size()) start_scatter(chunk_pieces_[i], flight(i));
      if (i > 0) finish_scatter(chunk_pieces_[i - 1], flight(i - 1));
    }
  });
}

void QuantizedCollectives::all_gather(Memory data) {
  begin(data, ReduceOp::kSum);
  require_order("all-gather");
  if (hosts() == 1) return groups_.within->all_gather(data, shape_.dtype);
  guard([&] {
    for (size_t i = 0; i < chunk_pieces_.size() + 1; ++i) {
      if (i < chunk_pieces_.size()) start_gather_of_own(chunk_pieces_[i], flight(i));
      if (i > 0) decode_parts(chunk_pieces_[i - 1], flight(i - 1));
    }
    for_each_host_range([&](Memory range) { groups_.within->all_gather(range, shape_.dtype); });
  });
}

uint64_t QuantizedCollectives::wire_bytes() const {
  if (hosts() == 1) return 0;
  return pieces_.size() * (bytes_sent(*groups_.between, scatter_call()) +
                           bytes_sent(*groups_.between, gather_call()));
}

void QuantizedCollectives::begin(Memory data, ReduceOp op) {
  GXP_ASSERT(data.bytes == shape_.count * size_of(shape_.dtype));
  GXP_ASSERT(op == ReduceOp::kSum || op == ReduceOp::kAvg);
  data_ = data;
  factor_ = op == ReduceOp::kAvg ? 1.0 / groups_.all->world_size() : 1;
}

void QuantizedCollectives::require_order(std::string_view act) const {
  if (groups_.in_order) return;
  fail(ErrorKind::kUnavailable,
       "{} in {}: the ranks of a host do not follow one another; number them host by host", act,
       codec_.name);
}

// What is in flight uses this object's memory and the caller's: it must end before an error leaves.
template <class Act>
void QuantizedCollectives::guard(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    groups_.within->abort(error.what());
    groups_.between->abort(error.what());
    for (Flight& flight : flights_) {
      for (Pending* pending : {&flight.within, &flight.scattered, &flight.gathered}) {
        try {
          pending->wait();
        } catch (const Error&) {
          // It has the same cause as the error that is being thrown.
        }
      }
    }
    throw;
  }
}

// ---- The stages

void QuantizedCollectives::start_within(const Piece& piece, Flight& flight) {
  flight.within = groups_.within->start_reduce_scatter(memory_of_range(piece.all), shape_.dtype,
                                                       ReduceOp::kSum);
}

void QuantizedCollectives::start_scatter(const Piece& piece, Flight& flight) {
  flight.within.wait();
  size_t at = piece.sent_residual;
  for (int to = 0; to < hosts(); ++to) {
    const Range part = piece.parts[static_cast<size_t>(to)];
    if (to != host()) encode_range(slot(flight.leaving, to), part, residual(sent_residual_, at));
    at += part.count;
  }
  flight.scattered = groups_.between->start(scatter_call(), flight.leaving, flight.arriving);
}

void QuantizedCollectives::start_gather_of_sums(const Piece& piece, Flight& flight) {
  flight.scattered.wait();
  const Range own = piece.parts[static_cast<size_t>(host())];
  std::byte* const out = slot(flight.sums, host());
  for_each_tile(own.count, [&](size_t offset, size_t count) {
    float sum[kTile];
    sum_tile(flight, {own.begin + offset, count}, offset, sum);
    encode(out + codec_.wire_bytes(offset), sum, count, codec_.format,
           residual(sum_residual_, piece.sum_residual + offset));
  });
  flight.gathered = groups_.between->start_all_gather(flight.sums, DType::kU8);
}

void QuantizedCollectives::finish_scatter(const Piece& piece, Flight& flight) {
  flight.scattered.wait();
  const Range own = piece.parts[static_cast<size_t>(host())];
  for_each_tile(own.count, [&](size_t offset, size_t count) {
    float sum[kTile];
    const Range tile{own.begin + offset, count};
    sum_tile(flight, tile, offset, sum);
    store_floats(memory_of_range(tile), shape_.dtype, sum);
  });
}

void QuantizedCollectives::start_gather_of_own(const Piece& piece, Flight& flight) {
  encode_range(slot(flight.sums, host()), piece.parts[static_cast<size_t>(host())], nullptr);
  flight.gathered = groups_.between->start_all_gather(flight.sums, DType::kU8);
}

void QuantizedCollectives::decode_parts(const Piece& piece, Flight& flight) {
  flight.gathered.wait();
  for (int from = 0; from < hosts(); ++from) {
    decode_range(piece.parts[static_cast<size_t>(from)], slot(flight.sums, from));
  }
}

void QuantizedCollectives::finish_gather(const Piece& piece, Flight& flight) {
  decode_parts(piece, flight);
  flight.within = groups_.within->start_all_gather(memory_of_range(piece.all), shape_.dtype);
}

// ---- Elements

// The sum of all ranks' versions of a tile of this rank's part, in rank order.
void QuantizedCollectives::sum_tile(const Flight& flight, Range tile, size_t offset,
                                    float* sum) const {
  std::fill_n(sum, tile.count, 0.0f);
  for (int from = 0; from < hosts(); ++from) {
    if (from == host()) {
      add_floats(sum, memory_of_range(tile), shape_.dtype);
    } else {
      const std::byte* const encoded = slot(flight.arriving, from) + codec_.wire_bytes(offset);
      decode_and_add(sum, encoded, tile.count, codec_.format);
    }
  }
  if (factor_ != 1) scale(memory_of(sum, tile.count), DType::kF32, factor_);
}

void QuantizedCollectives::encode_range(std::byte* out, Range range, float* kept) const {
  for_each_tile(range.count, [&](size_t offset, size_t count) {
    float tile[kTile];
    const ConstMemory from = memory_of_range({range.begin + offset, count});
    encode(out + codec_.wire_bytes(offset), as_floats(from, shape_.dtype, tile), count,
           codec_.format, kept == nullptr ? nullptr : kept + offset);
  });
}

void QuantizedCollectives::decode_range(Range range, const std::byte* encoded) const {
  for_each_tile(range.count, [&](size_t offset, size_t count) {
    float tile[kTile];
    decode(tile, encoded + codec_.wire_bytes(offset), count, codec_.format);
    store_floats(memory_of_range({range.begin + offset, count}), shape_.dtype, tile);
  });
}

template <class Fn>
void QuantizedCollectives::for_each_host_range(const Fn& fn) {
  const int within = groups_.within->world_size();
  const Chunks chunks(shape_.count, within * hosts());
  for (int host = 0; host < hosts(); ++host) {
    fn(memory_of_range(chunks.span(host * within, (host + 1) * within)));
  }
}

Call QuantizedCollectives::scatter_call() const {
  return {.collective = Collective::kAllToAll, .dtype = DType::kU8, .count = exchanged_bytes()};
}
Call QuantizedCollectives::gather_call() const {
  return {.collective = Collective::kAllGather, .dtype = DType::kU8, .count = exchanged_bytes()};
}

Memory QuantizedCollectives::memory_of_range(Range range) const {
  const size_t element_bytes = size_of(shape_.dtype);
  return data_.slice(range.begin * element_bytes, range.count * element_bytes);
}

std::byte* QuantizedCollectives::slot(Memory slots, int host) const {
  return slots.data + static_cast<size_t>(host) * slot_bytes_;
}

float* QuantizedCollectives::residual(const Buffer& buffer, size_t at) const {
  if (buffer.memory().data == nullptr) return nullptr;
  return reinterpret_cast<float*>(buffer.memory().data) + at;
}

}  // namespace gxp

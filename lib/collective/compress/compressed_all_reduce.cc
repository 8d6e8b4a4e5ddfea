#include "lib/collective/compress/compressed_all_reduce.h"

#include <algorithm>
#include <cstring>

#include "kernels/quantize.h"
#include "kernels/reduce_op.h"
#include "lib/collective/algorithm/hosts.h"
#include "lib/device/memory.h"

namespace gxp {
namespace {

// Elements of f32, f16 or bf16 seen as f32, a tile at a time.
Memory memory_of_floats(float* data, size_t count) {
  return {reinterpret_cast<std::byte*>(data), count * sizeof(float), MemorySpace::kHost};
}

WireFormat format_of(DType half) {
  return half == DType::kF16 ? WireFormat::kF16 : WireFormat::kBF16;
}

// The elements themselves if they are f32, else decoded into `tile`.
const float* as_floats(ConstMemory from, DType dtype, float* tile) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(from.data);
  decode(tile, from.data, from.bytes / size_of(dtype), format_of(dtype));
  return tile;
}

void add_floats(float* sum, ConstMemory from, DType dtype) {
  const size_t count = from.bytes / size_of(dtype);
  if (dtype == DType::kF32) return fold(memory_of_floats(sum, count), from, dtype, ReduceOp::kSum);
  decode_and_add(sum, from.data, count, format_of(dtype));
}

void store_floats(Memory to, DType dtype, const float* from) {
  const size_t count = to.bytes / size_of(dtype);
  if (dtype != DType::kF32) return encode(to.data, from, count, format_of(dtype));
  if (count > 0) std::memcpy(to.data, from, to.bytes);
}

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

HostGroups split_by_host(Communicator& comm) { return split_by_host(comm, comm.hosts()); }

HostGroups split_by_host(Communicator& comm, std::span<const int> host_of_ranks) {
  const HostsOfCall hosts(CallShape{.world_size = comm.world_size(), .hosts = host_of_ranks});
  if (!hosts.are_equal()) {
    fail(ErrorKind::kUnavailable,
         "compress between {} hosts: they have {} to {} ranks; start equally many on each, or use "
         "no codec",
         hosts.count(), hosts.smallest(), hosts.largest());
  }
  const int host = hosts.host_of(comm.rank());
  const int index = hosts.index_of(comm.rank());
  HostGroups groups;
  groups.all = &comm;
  groups.intra_host = comm.split(host, comm.rank());
  groups.inter_host = comm.split(index, host);
  return groups;
}

CompressedAllReduce::CompressedAllReduce(const Codec& codec, const CompressionOptions& options,
                                         size_t count, DType dtype, HostGroups& groups,
                                         Device& device)
    : codec_(codec),
      options_(options),
      count_(count),
      dtype_(dtype),
      groups_(groups),
      pieces_(cut_into_pieces()) {
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    fail(ErrorKind::kUnavailable, "{} of {}: codecs take f32, f16 and bf16", codec.name,
         to_string(dtype));
  }
  allocate(device);
}

std::vector<CompressedAllReduce::Piece> CompressedAllReduce::cut_into_pieces() const {
  GXP_ASSERT(options_.piece_bytes > 0);
  const size_t bytes = count_ * size_of(dtype_);
  const auto count = int((bytes + options_.piece_bytes - 1) / options_.piece_bytes);
  std::vector<Piece> pieces;
  size_t sent = 0;
  size_t summed = 0;
  for (int i = 0; i < count; ++i) {
    Piece piece{.parts = {},
                .all = Chunks(count_, count)[i],
                .sent_residual = sent,
                .sum_residual = summed};
    const Range own =
        Chunks(piece.all.count, groups_.intra_host->world_size())[groups_.intra_host->rank()];
    for (int host = 0; host < hosts(); ++host) {
      const Range part = Chunks(own.count, hosts())[host];
      piece.parts.push_back({piece.all.begin + own.begin + part.begin, part.count});
      sent += part.count;
    }
    summed += piece.parts[size_t(host())].count;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

void CompressedAllReduce::allocate(Device& device) {
  if (hosts() == 1) return;  // nothing is encoded
  size_t sent = 0;
  size_t summed = 0;
  for (const Piece& piece : pieces_) {
    const size_t most = largest_part(piece.parts);
    slot_bytes_ = std::max(slot_bytes_, codec_.wire_bytes(most));
    sent = std::max(sent, piece.sent_residual + most * size_t(hosts()));
    summed = std::max(summed, piece.sum_residual + most);
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

void CompressedAllReduce::all_reduce(Memory data, ReduceOp op) {
  GXP_ASSERT(data.bytes == count_ * size_of(dtype_));
  GXP_ASSERT(op == ReduceOp::kSum || op == ReduceOp::kAvg);
  if (hosts() == 1) return groups_.intra_host->all_reduce(data, dtype_, op);
  data_ = data;
  factor_ = op == ReduceOp::kAvg ? 1.0 / groups_.all->world_size() : 1;
  guard([&] {
    // Pieces follow one another through the stages; all ranks start what they start in this order.
    for (size_t i = 0; i < pieces_.size() + kFlights - 1; ++i) {
      const auto stage = [&](size_t behind, auto act) {
        if (behind <= i && i - behind < pieces_.size())
          act(pieces_[i - behind], flight(i - behind));
      };
      stage(0, [&](const Piece& piece, Flight& in) { start_intra_host(piece, in); });
      stage(1, [&](const Piece& piece, Flight& in) { start_scatter(piece, in); });
      stage(2, [&](const Piece& piece, Flight& in) { start_gather_of_sums(piece, in); });
      stage(3, [&](const Piece& piece, Flight& in) { finish_gather(piece, in); });
      stage(4, [&](const Piece&, Flight& in) { in.intra_host.wait(); });
    }
  });
}

// What is in flight uses this object's memory and the caller's: it must end before an error leaves.
template <class Act>
void CompressedAllReduce::guard(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    groups_.intra_host->abort(error.what());
    groups_.inter_host->abort(error.what());
    for (Flight& flight : flights_) {
      for (Pending* pending : {&flight.intra_host, &flight.scattered, &flight.gathered}) {
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

void CompressedAllReduce::start_intra_host(const Piece& piece, Flight& flight) {
  flight.intra_host =
      groups_.intra_host->start_reduce_scatter(memory_of_range(piece.all), dtype_, ReduceOp::kSum);
}

void CompressedAllReduce::start_scatter(const Piece& piece, Flight& flight) {
  flight.intra_host.wait();
  size_t at = piece.sent_residual;
  for (int to = 0; to < hosts(); ++to) {
    const Range part = piece.parts[size_t(to)];
    if (to != host()) encode_range(slot(flight.leaving, to), part, residual(sent_residual_, at));
    at += part.count;
  }
  const Call call{
      .collective = Collective::kAllToAll, .dtype = DType::kU8, .count = exchanged_bytes()};
  flight.scattered = groups_.inter_host->start(call, flight.leaving, flight.arriving);
}

void CompressedAllReduce::start_gather_of_sums(const Piece& piece, Flight& flight) {
  flight.scattered.wait();
  const Range own = piece.parts[size_t(host())];
  std::byte* const out = slot(flight.sums, host());
  for_each_tile(own.count, [&](size_t offset, size_t count) {
    float sum[kTile];
    sum_tile(flight, {own.begin + offset, count}, offset, sum);
    encode(out + codec_.wire_bytes(offset), sum, count, codec_.format,
           residual(sum_residual_, piece.sum_residual + offset));
  });
  flight.gathered = groups_.inter_host->start_all_gather(flight.sums, DType::kU8);
}

void CompressedAllReduce::finish_gather(const Piece& piece, Flight& flight) {
  flight.gathered.wait();
  for (int from = 0; from < hosts(); ++from) {
    decode_range(piece.parts[size_t(from)], slot(flight.sums, from));
  }
  flight.intra_host = groups_.intra_host->start_all_gather(memory_of_range(piece.all), dtype_);
}

// ---- Elements

// The sum of all ranks' versions of a tile of this rank's part, in rank order.
void CompressedAllReduce::sum_tile(const Flight& flight, Range tile, size_t offset,
                                   float* sum) const {
  std::fill_n(sum, tile.count, 0.0f);
  for (int from = 0; from < hosts(); ++from) {
    if (from == host()) {
      add_floats(sum, memory_of_range(tile), dtype_);
    } else {
      const std::byte* const encoded = slot(flight.arriving, from) + codec_.wire_bytes(offset);
      decode_and_add(sum, encoded, tile.count, codec_.format);
    }
  }
  if (factor_ != 1) scale(memory_of_floats(sum, tile.count), DType::kF32, factor_);
}

void CompressedAllReduce::encode_range(std::byte* out, Range range, float* kept) const {
  for_each_tile(range.count, [&](size_t offset, size_t count) {
    float tile[kTile];
    const ConstMemory from = memory_of_range({range.begin + offset, count});
    encode(out + codec_.wire_bytes(offset), as_floats(from, dtype_, tile), count, codec_.format,
           kept == nullptr ? nullptr : kept + offset);
  });
}

void CompressedAllReduce::decode_range(Range range, const std::byte* encoded) const {
  for_each_tile(range.count, [&](size_t offset, size_t count) {
    float tile[kTile];
    decode(tile, encoded + codec_.wire_bytes(offset), count, codec_.format);
    store_floats(memory_of_range({range.begin + offset, count}), dtype_, tile);
  });
}

Memory CompressedAllReduce::memory_of_range(Range range) const {
  const size_t element_bytes = size_of(dtype_);
  return data_.slice(range.begin * element_bytes, range.count * element_bytes);
}

std::byte* CompressedAllReduce::slot(Memory slots, int host) const {
  return slots.data + size_t(host) * slot_bytes_;
}

float* CompressedAllReduce::residual(const Buffer& buffer, size_t at) const {
  if (buffer.memory().data == nullptr) return nullptr;
  return reinterpret_cast<float*>(buffer.memory().data) + at;
}

}  // namespace gxp

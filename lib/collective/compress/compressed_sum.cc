#include "lib/collective/compress/compressed_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/quantize.h"
#include "kernels/reduce_op.h"
#include "lib/collective/compress/encoded_elements.h"
#include "lib/device/memory.h"

namespace gxp {
CompressedSum::CompressedSum(const Codec& codec, const CompressedShape& shape, DType dtype,
                             HostGroups& groups)
    : codec_(codec),
      shape_(shape),
      dtype_(dtype),
      groups_(groups),
      place_(groups.place()),
      pieces_(cut_for_hosts(shape, place_)),
      slot_bytes_(codec.wire_bytes(largest_part(pieces_))) {
  check_codec_takes(codec, dtype);
  if (scatters()) check_numbered_by_host(groups, "a reduce-scatter");
}

size_t CompressedSum::slots_bytes() const { return gxp::slots_bytes(codec_, shape_, place_); }

void CompressedSum::place_slots(Memory slots) {
  GXP_ASSERT(slots.bytes >= slots_bytes());
  const size_t bytes = slot_bytes_ * size_t(place_.hosts);
  size_t at = 0;
  for (size_t i = 0; i < std::min(kPiecesInFlight, pieces_.size()); ++i) {
    Flight& flight = flights_[i];
    for (Memory* each : {&flight.leaving, &flight.arriving, &flight.sums}) {
      if (each == &flight.sums && scatters()) continue;
      *each = slots.slice(at, bytes);
      at += bytes;
    }
  }
}

void CompressedSum::run(Memory data, ReduceOp op, const Buffers& buffers) {
  GXP_ASSERT(data.bytes == shape_.count * size_of(dtype_));
  GXP_ASSERT(op == ReduceOp::kSum || op == ReduceOp::kAvg);
  data_ = data;
  residual_ = buffers.residual;
  factor_ = op == ReduceOp::kAvg ? 1.0 / groups_.all->world_size() : 1;
  if (place_.hosts == 1) return run_on_one_host(op);
  place_slots(buffers.slots);
  guard([&] {
    // Pieces follow one another through the stages; all ranks start what they start in this order.
    for (size_t i = 0; i < pieces_.size() + kPiecesInFlight - 1; ++i) {
      const auto stage = [&](size_t behind, auto act) {
        if (behind <= i && i - behind < pieces_.size())
          act(pieces_[i - behind], flight(i - behind));
      };
      stage(0, [&](const HostPiece& piece, Flight& in) { start_within_host(piece, in); });
      stage(1, [&](const HostPiece& piece, Flight& in) { start_scatter(piece, in); });
      if (scatters()) {
        stage(2, [&](const HostPiece& piece, Flight& in) { finish_scatter(piece, in); });
        continue;
      }
      stage(2, [&](const HostPiece& piece, Flight& in) { start_gather_of_sums(piece, in); });
      stage(3, [&](const HostPiece& piece, Flight& in) { finish_gather(piece, in); });
      stage(4, [&](const HostPiece&, Flight& in) { wait_within_host(in); });
    }
  });
}

// Nothing is encoded; what is pending from a run on several hosts is added once.
void CompressedSum::run_on_one_host(ReduceOp op) {
  for (const HostPiece& piece : pieces_) {
    if (residual_ == nullptr) break;
    const Range own = piece.parts.front();
    for_each_tile(own.count, [&](size_t offset, size_t count) {
      const Memory at = memory_of_range({own.begin + offset, count});
      float* const kept = residual_of(piece, 0) + offset;
      add_floats(kept, at, dtype_);
      store_floats(at, dtype_, kept);
      std::fill_n(kept, count, 0.0f);
    });
  }
  if (scatters())
    groups_.all->reduce_scatter(data_, dtype_, op);
  else
    groups_.all->all_reduce(data_, dtype_, op);
}

// What is in flight uses this object's memory and the caller's: it must end before an error leaves.
template <class Act>
void CompressedSum::guard(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    groups_.intra_host->abort(error.what());
    groups_.inter_host->abort(error.what());
    const auto end = [](Pending& pending) {
      try {
        pending.wait();
      } catch (const Error&) {
        // It has the same cause as the error that is being thrown.
      }
    };
    for (Flight& flight : flights_) {
      for (Pending& pending : flight.within_host) end(pending);
      end(flight.scattered);
      end(flight.gathered);
    }
    throw;
  }
}

// ---- The stages

void CompressedSum::start_within_host(const HostPiece& piece, Flight& flight) {
  flight.within_host.clear();
  for (const Range& range : piece.within_host)
    flight.within_host.push_back(
        groups_.intra_host->start_reduce_scatter(memory_of_range(range), dtype_, ReduceOp::kSum));
}

void CompressedSum::wait_within_host(Flight& flight) {
  for (Pending& pending : flight.within_host) pending.wait();
}

void CompressedSum::start_scatter(const HostPiece& piece, Flight& flight) {
  wait_within_host(flight);
  for (int to = 0; to < place_.hosts; ++to) {
    if (to != place_.host)
      encode_elements(codec_, slot(flight.leaving, to), memory_of_range(piece.parts[size_t(to)]),
                      dtype_, residual_of(piece, to));
  }
  const Call call{.collective = Collective::kAllToAll,
                  .dtype = DType::kU8,
                  .count = slot_bytes_ * size_t(place_.hosts)};
  flight.scattered = groups_.inter_host->start(call, flight.leaving, flight.arriving);
}

void CompressedSum::finish_scatter(const HostPiece& piece, Flight& flight) {
  flight.scattered.wait();
  const Range own = piece.parts[size_t(place_.host)];
  float* const pending = residual_of(piece, place_.host);
  for_each_tile(own.count, [&](size_t offset, size_t count) {
    float sum[kCodecTile];
    sum_tile(flight, {own.begin + offset, count}, offset, sum);
    if (pending != nullptr) {
      for (size_t i = 0; i < count; ++i) sum[i] += std::exchange(pending[offset + i], 0.0f);
    }
    store_floats(memory_of_range({own.begin + offset, count}), dtype_, sum);
  });
}

void CompressedSum::start_gather_of_sums(const HostPiece& piece, Flight& flight) {
  flight.scattered.wait();
  const Range own = piece.parts[size_t(place_.host)];
  float* const kept = residual_of(piece, place_.host);
  std::byte* const out = slot(flight.sums, place_.host);
  for_each_tile(own.count, [&](size_t offset, size_t count) {
    float sum[kCodecTile];
    sum_tile(flight, {own.begin + offset, count}, offset, sum);
    encode(out + codec_.wire_bytes(offset), sum, count, codec_.format,
           kept == nullptr ? nullptr : kept + offset);
  });
  flight.gathered = groups_.inter_host->start_all_gather(flight.sums, DType::kU8);
}

void CompressedSum::finish_gather(const HostPiece& piece, Flight& flight) {
  flight.gathered.wait();
  for (int from = 0; from < place_.hosts; ++from)
    decode_elements(codec_, memory_of_range(piece.parts[size_t(from)]), dtype_,
                    slot(flight.sums, from));
  flight.within_host.clear();
  for (const Range& range : piece.within_host)
    flight.within_host.push_back(
        groups_.intra_host->start_all_gather(memory_of_range(range), dtype_));
}

// ---- Elements

// The sum of all ranks' versions of a tile of this rank's part, in rank order.
void CompressedSum::sum_tile(const Flight& flight, Range tile, size_t offset, float* sum) const {
  std::fill_n(sum, tile.count, 0.0f);
  for (int from = 0; from < place_.hosts; ++from) {
    if (from == place_.host) {
      add_floats(sum, memory_of_range(tile), dtype_);
    } else {
      const std::byte* const encoded = slot(flight.arriving, from) + codec_.wire_bytes(offset);
      decode_and_add(sum, encoded, tile.count, codec_.format);
    }
  }
  if (factor_ != 1)
    scale({reinterpret_cast<std::byte*>(sum), tile.count * sizeof(float), MemorySpace::kHost},
          DType::kF32, factor_);
}

Memory CompressedSum::memory_of_range(Range range) const {
  const size_t element_bytes = size_of(dtype_);
  return data_.slice(range.begin * element_bytes, range.count * element_bytes);
}

std::byte* CompressedSum::slot(Memory slots, int host) const {
  return slots.data + size_t(host) * slot_bytes_;
}

float* CompressedSum::residual_of(const HostPiece& piece, int host) const {
  if (residual_ == nullptr) return nullptr;
  size_t at = piece.residual;
  for (int before = 0; before < host; ++before) at += piece.parts[size_t(before)].count;
  return residual_ + at;
}

}  // namespace gxp

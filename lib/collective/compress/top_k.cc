#include "lib/collective/compress/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "lib/collective/compress/float_tiles.h"

namespace gxp {
namespace {

uint32_t magnitude_of(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }

std::span<float> floats_in(Memory memory) {
  return {reinterpret_cast<float*>(memory.data), memory.bytes / sizeof(float)};
}

}  // namespace

// Radix selection from the top: each pass counts the magnitudes that agree with the digits found so
// far by their next digit, and walks down to the one where the k-th largest lies.
Threshold find_threshold(std::span<const float> values, size_t k) {
  GXP_ASSERT(0 < k && k <= values.size());
  Threshold found{.magnitude = 0, .ties = k};
  for (const auto& [shift, bits] : {std::pair{20, 11}, {10, 10}, {0, 10}}) {
    std::vector<size_t> counts(size_t{1} << bits);
    const uint64_t above = uint64_t{found.magnitude} >> (shift + bits);
    for (const float value : values) {
      const uint64_t magnitude = magnitude_of(value);
      if (magnitude >> (shift + bits) == above) ++counts[magnitude >> shift & (counts.size() - 1)];
    }
    size_t digit = counts.size() - 1;
    while (found.ties > counts[digit]) found.ties -= counts[digit--];
    found.magnitude |= static_cast<uint32_t>(digit << shift);
  }
  return found;
}

TopKAllReduce::TopKAllReduce(const CompressionOptions& options, const BufferShape& shape,
                             HostGroups& groups, Device& device)
    : groups_(groups),
      count_(shape.count),
      part_(Chunks(shape.count, groups.within->world_size())[groups.within->rank()]) {
  if (shape.dtype != DType::kF32 || part_.count > std::numeric_limits<uint32_t>::max()) {
    fail(ErrorKind::kUnavailable, "top_k of {} {}: it takes f32, up to 2^32 a rank; use a codec",
         shape.count, to_string(shape.dtype));
  }
  const auto wanted = static_cast<size_t>(std::ceil(options.top_k_fraction * double(part_.count)));
  k_ = std::min(wanted, part_.count);
  kept_ = device.allocate(part_.count * sizeof(float), MemoryKind::kCommunication);
  slots_ = device.allocate(gather_call().count, MemoryKind::kCommunication);
}

void TopKAllReduce::all_reduce(Memory data, ReduceOp op) {
  GXP_ASSERT(data.bytes == count_ * sizeof(float));
  GXP_ASSERT(op == ReduceOp::kSum || op == ReduceOp::kAvg);
  if (groups_.between->world_size() == 1) return groups_.within->all_reduce(data, DType::kF32, op);
  groups_.within->reduce_scatter(data, DType::kF32, ReduceOp::kSum);
  const Memory part = data.slice(part_.begin * sizeof(float), part_.count * sizeof(float));
  const int host = groups_.between->rank();
  if (k_ > 0) {
    fold(kept_.memory(), part, DType::kF32, ReduceOp::kSum);
    take_largest(half_slot<uint32_t>(host, 0), half_slot<float>(host, 1));
  }
  groups_.between->all_gather(slots_.memory(), DType::kU8);
  sum_all(floats_in(part), op == ReduceOp::kAvg ? 1.0 / groups_.all->world_size() : 1);
  groups_.within->all_gather(data, DType::kF32);
}

uint64_t TopKAllReduce::wire_bytes() const { return bytes_sent(*groups_.between, gather_call()); }

// What is taken is no longer kept.
void TopKAllReduce::take_largest(std::span<uint32_t> places, std::span<float> values) {
  const std::span<float> kept = floats_in(kept_.memory());
  Threshold threshold = find_threshold(kept, k_);
  size_t taken = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const uint32_t magnitude = magnitude_of(kept[i]);
    if (magnitude < threshold.magnitude) continue;
    if (magnitude == threshold.magnitude && threshold.ties-- == 0) {
      threshold.ties = 0;
      continue;
    }
    places[taken] = static_cast<uint32_t>(i);
    values[taken++] = kept[i];
    kept[i] = 0;
  }
  GXP_ASSERT(taken == k_);
}

void TopKAllReduce::sum_all(std::span<float> part, double factor) const {
  std::fill(part.begin(), part.end(), 0.0f);
  for (int host = 0; host < groups_.between->world_size(); ++host) {
    const auto places = half_slot<uint32_t>(host, 0);
    const auto values = half_slot<float>(host, 1);
    for (size_t i = 0; i < k_; ++i) {
      if (places[i] >= part.size()) {
        fail(ErrorKind::kPeer, "top_k: the rank of host {} sent place {} of {} elements", host,
             places[i], part.size());
      }
      part[places[i]] += values[i];
    }
  }
  if (factor != 1) scale(memory_of(part), DType::kF32, factor);
}

Call TopKAllReduce::gather_call() const {
  const size_t slot_bytes = k_ * (sizeof(uint32_t) + sizeof(float));
  return {.collective = Collective::kAllGather,
          .dtype = DType::kU8,
          .count = slot_bytes * static_cast<size_t>(groups_.between->world_size())};
}

template <class T>
std::span<T> TopKAllReduce::half_slot(int host, size_t half) const {
  static_assert(sizeof(T) == 4);
  std::byte* const slot = slots_.memory().data + static_cast<size_t>(host) * k_ * 8;
  return {reinterpret_cast<T*>(slot + half * k_ * 4), k_};
}

}  // namespace gxp

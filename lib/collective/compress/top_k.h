// All-reduce of the largest elements only: Aji & Heafield, arXiv:1704.05021, with the residual kept
// on each rank (Stich et al., arXiv:1809.07599).
//
//   Within a host an exact reduce-scatter, then between hosts each rank adds what it has kept to
//   its part, sends the k largest values by magnitude with their places to all, keeps the rest, and
//   sums what it got in rank order; within, an all-gather.
//   Ties     the lower place wins, so that the choice is exactly k elements and the same each run.
//   Cost     8k bytes to each other host, 6 passes over the part; sends less than f32 does
//            where k is below the part / hosts.
//   Memory   4 bytes per element of the part.
#pragma once

#include <cstdint>
#include <span>

#include "lib/collective/compress/compressed.h"

namespace gxp {

class TopKAllReduce final : public CompressedAllReduce {
 public:
  // Throws kUnavailable for another dtype than f32 and above 2^32 elements.
  TopKAllReduce(const CompressionOptions& options, const BufferShape& shape, HostGroups& groups,
                Device& device);
  void all_reduce(Memory data, ReduceOp op) override;
  [[nodiscard]] uint64_t wire_bytes() const override;

 private:
  // Places and values lie behind one another in a rank's slot.
  void take_largest(std::span<uint32_t> places, std::span<float> values);
  void sum_all(std::span<float> part, double factor) const;
  [[nodiscard]] Call gather_call() const;
  template <class T>
  [[nodiscard]] std::span<T> half_slot(int host, size_t half) const;

  HostGroups& groups_;
  size_t count_;
  Range part_;  // that this rank sums
  size_t k_;
  Buffer kept_;
  Buffer slots_;
};

// The magnitude, as bits, below which no element of the k largest lies, and how many elements of
// exactly that magnitude are among these. 0 < k <= values.size(). NaN counts as larger than
// infinity.
struct Threshold {
  uint32_t magnitude = 0;
  size_t ties = 0;
};
Threshold find_threshold(std::span<const float> values, size_t k);

}  // namespace gxp

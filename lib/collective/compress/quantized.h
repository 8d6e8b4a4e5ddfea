// Collectives whose parts travel between hosts in a codec of lib/collective/compress/codec.h.
//
//   all-reduce      within each host: exact reduce-scatter. Between hosts, with the ranks of the
//                   same place: each encodes its version of each part, an all-to-all takes the
//                   parts to their owners, who decode them and sum in rank order, in f32; they
//                   encode the sums, an all-gather brings those to all. Within: all-gather.
//   reduce-scatter  the same without the second half; all-gather: the second half alone. These are
//                   qgZ and qwZ of ZeRO++ (Wang et al., arXiv:2306.10209).
// So an element is encoded twice at most, whatever the number of hosts; around a ring it would be
// encoded at each hop. A part that stays with its owner is not encoded at all.
//   Error    of a sum over h hosts: h + 1 times the codec's bound, of the largest value encoded.
//            With error feedback (LoCo: Xie et al., arXiv:2407.04480) both encodings keep what they
//            lose for the next call: calls add up to the exact sum, but for the last call's error.
//   Cost     2(h - 1)/h * encoded bytes / (ranks of a host) leave each rank. The buffer is cut into
//            pieces: while one travels, the next is encoded and the one before decoded.
#pragma once

#include <array>
#include <vector>

#include "lib/collective/compress/codec.h"
#include "lib/collective/compress/compressed.h"

namespace gxp {

class QuantizedCollectives final : public CompressedAllReduce {
 public:
  // `shape.matrices` are not used.
  QuantizedCollectives(const Codec& codec, const CompressionOptions& options,
                       const BufferShape& shape, HostGroups& groups, Device& device);

  void all_reduce(Memory data, ReduceOp op) override;
  // As Communicator::reduce_scatter and all_gather. Throw kUnavailable if the ranks of a host do
  // not follow one another. An all-gather has no error feedback, and the rank's own chunk becomes
  // what the others get. Objects with error feedback serve either all-reduces or reduce-scatters.
  void reduce_scatter(Memory data, ReduceOp op);
  void all_gather(Memory data);
  [[nodiscard]] uint64_t wire_bytes() const override;

 private:
  // What travels together: for each host a part of the buffer, which its rank sums.
  struct Piece {
    std::vector<Range> parts;
    Range all;                 // of the buffer; within the host this is reduced and gathered
    size_t sent_residual = 0;  // where the residuals of the parts, and of this rank's sum, begin
    size_t sum_residual = 0;
  };
  // Pieces are in different stages at the same time, each with its own memory.
  struct Flight {
    Memory leaving, arriving, sums;  // one slot for each host
    Pending within, scattered, gathered;
  };
  static constexpr size_t kFlights = 5;

  [[nodiscard]] std::vector<Piece> contiguous_pieces() const;
  [[nodiscard]] std::vector<Piece> chunk_pieces() const;
  void number_residuals(std::vector<Piece>& pieces) const;
  void allocate(Device& device);

  void begin(Memory data, ReduceOp op);
  void require_order(std::string_view act) const;
  template <class Act>
  void guard(const Act& act);

  // Stages: each waits for the one before it.
  void start_within(const Piece& piece, Flight& flight);
  void start_scatter(const Piece& piece, Flight& flight);
  void start_gather_of_sums(const Piece& piece, Flight& flight);
  void finish_scatter(const Piece& piece, Flight& flight);  // the sums stay here
  void start_gather_of_own(const Piece& piece, Flight& flight);
  void decode_parts(const Piece& piece, Flight& flight);
  void finish_gather(const Piece& piece, Flight& flight);

  void sum_tile(const Flight& flight, Range tile, size_t offset, float* sum) const;
  void encode_range(std::byte* out, Range range, float* kept) const;
  void decode_range(Range range, const std::byte* encoded) const;

  // fn(memory) for the chunks of each host's ranks.
  template <class Fn>
  void for_each_host_range(const Fn& fn);
  [[nodiscard]] Call scatter_call() const;
  [[nodiscard]] Call gather_call() const;
  [[nodiscard]] Memory memory_of_range(Range range) const;
  [[nodiscard]] std::byte* slot(Memory slots, int host) const;
  [[nodiscard]] float* residual(const Buffer& buffer, size_t at) const;
  [[nodiscard]] Flight& flight(size_t piece) { return flights_[piece % kFlights]; }
  [[nodiscard]] int host() const { return groups_.between->rank(); }
  [[nodiscard]] int hosts() const { return groups_.between->world_size(); }
  [[nodiscard]] size_t exchanged_bytes() const { return slot_bytes_ * size_t(hosts()); }

  const Codec& codec_;
  CompressionOptions options_;
  BufferShape shape_;
  HostGroups& groups_;
  std::vector<Piece> pieces_;        // of an all-reduce
  std::vector<Piece> chunk_pieces_;  // of a reduce-scatter or all-gather
  size_t slot_bytes_ = 0;            // of the largest part, encoded
  std::array<Flight, kFlights> flights_;
  Buffer slots_;
  Buffer sent_residual_;  // f32; empty without error feedback
  Buffer sum_residual_;
  // Of the call that runs:
  Memory data_;
  double factor_ = 1;
};

}  // namespace gxp

// A sum over ranks whose parts travel between hosts in a codec (codec.h): fewer bytes, at the price
// of precision; off unless asked for. Nothing is encoded within a host, whose links are faster than
// the codecs.
//
//   Within each host   exact reduce-scatters.
//   Between hosts      among the ranks of the same place: each encodes its version of each part, an
//                      all-to-all takes the parts to their owners, who decode them and sum in rank
//                      order, in f32. That is a reduce-scatter. For an all-reduce the owners encode
//                      the sums, and an all-gather brings those to all.
//   Within each host   for an all-reduce: all-gather.
// An element is therefore encoded at most twice, for any number of hosts; in a ring it would be
// encoded at each hop. A part that stays with its owner is not encoded for it.
//
// What a call could not send is kept in a residual, which the next call adds, so that nothing is
// lost for good (error feedback: Karimireddy et al., arXiv:1901.09847; for both encodings, as LoCo:
// Xie et al., arXiv:2407.04480). A rank's residual has an element for each of its parts': of the
// parts of other hosts what their owners have not got yet, of its own part what the sum lacked. So
// the residuals of all hosts together are one copy of the buffer per host, and their sum over hosts
// is, element by element, what is pending. A reduce-scatter leaves nothing pending of an own part,
// and adds to its sum what it finds there.
//   Error       of a sum over h hosts: at most h + 1 times the codec's bound, of the largest value
//               encoded. With error feedback calls add up to the exact sum, but for the last call's
//               error.
//   Cost        2(h - 1)/h * encoded bytes / (ranks of a host) leave each rank, for a
//               reduce-scatter half of that. An all-reduce is cut into pieces: while one travels,
//               the next is encoded and the one before decoded.
//   Bits        the same on every rank and in every run; they depend on how the buffer is cut.
//   Not finite  a NaN or an infinity makes the elements that are encoded together with it NaN or
//               infinite on every rank, and is not kept for the next call.
//   Threads     one at a time, as the communicators.
//   Errors      those of the communicators.
#pragma once

#include <array>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/collective/compress/codec.h"
#include "lib/collective/compress/host_groups.h"

namespace gxp {

class CompressedSum {
 public:
  // Of f32, f16 or bf16; kUnavailable for other types, and for a reduce-scatter among ranks that are
  // not numbered host by host. `codec` and `groups` outlive the object; objects may share them. All
  // ranks pass the same.
  CompressedSum(const Codec& codec, const CompressedShape& shape, DType dtype, HostGroups& groups);

  // Memory of a call, of the host. Objects whose calls do not overlap may share the slots.
  struct Buffers {
    Memory slots;               // slots_bytes()
    float* residual = nullptr;  // residual_count(); null: no error feedback
  };
  [[nodiscard]] size_t slots_bytes() const;
  [[nodiscard]] size_t residual_count() const { return elements_of_parts(pieces_); }

  // In place, as Communicator's call: kSum or kAvg over all ranks.
  void run(Memory data, ReduceOp op, const Buffers& buffers);

 private:
  // Pieces are in different stages at the same time, each with its own memory.
  struct Flight {
    Memory leaving, arriving, sums;  // one slot for each host
    std::vector<Pending> within_host;
    Pending scattered, gathered;
  };
  void place_slots(Memory slots);
  void run_on_one_host(ReduceOp op);
  template <class Act>
  void guard(const Act& act);

  // Stages: each waits for the one before it.
  void start_within_host(const HostPiece& piece, Flight& flight);
  void start_scatter(const HostPiece& piece, Flight& flight);
  void finish_scatter(const HostPiece& piece, Flight& flight);
  void start_gather_of_sums(const HostPiece& piece, Flight& flight);
  void finish_gather(const HostPiece& piece, Flight& flight);
  static void wait_within_host(Flight& flight);

  void sum_tile(const Flight& flight, Range tile, size_t offset, float* sum) const;

  [[nodiscard]] Memory memory_of_range(Range range) const;
  [[nodiscard]] std::byte* slot(Memory slots, int host) const;
  // Of the piece's part for `host`; null without error feedback.
  [[nodiscard]] float* residual_of(const HostPiece& piece, int host) const;
  [[nodiscard]] Flight& flight(size_t piece) { return flights_[piece % kPiecesInFlight]; }
  [[nodiscard]] bool scatters() const { return shape_.collective == Collective::kReduceScatter; }

  const Codec& codec_;
  CompressedShape shape_;
  DType dtype_;
  HostGroups& groups_;
  HostPlace place_;
  std::vector<HostPiece> pieces_;
  size_t slot_bytes_;  // of the largest part, encoded
  std::array<Flight, kPiecesInFlight> flights_;
  // The call that runs:
  Memory data_;
  float* residual_ = nullptr;
  double factor_ = 1;
};

}  // namespace gxp

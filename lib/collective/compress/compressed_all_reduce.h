// An all-reduce whose parts travel between hosts in a codec (codec.h): fewer bytes, at the price of
// precision; off unless asked for. Nothing is encoded within a host, whose links are faster than
// the codecs.
//
//   Within each host   exact reduce-scatter.
//   Between hosts      among the ranks of the same place: each encodes its version of each part, an
//                      all-to-all takes the parts to their owners, who decode them and sum in rank
//                      order, in f32; they encode the sums, an all-gather brings those to all.
//   Within each host   all-gather.
// An element is therefore encoded at most twice, for any number of hosts; in a ring it would be
// encoded at each hop. A part that stays with its owner is not encoded at all.
//
// An object serves one buffer: it owns what the last call could not send, which the next call adds,
// so that nothing is lost for good (error feedback: Karimireddy et al., arXiv:1901.09847; for both
// encodings, as LoCo: Xie et al., arXiv:2407.04480).
//   Error       of a sum over h hosts: h + 1 times the codec's bound, of the largest value encoded.
//               With error feedback calls add up to the exact sum, but for the last call's error.
//   Cost        2(h - 1)/h * encoded bytes / (ranks of a host) leave each rank. The buffer is cut
//               into pieces: while one travels, the next is encoded and the one before decoded.
//   Bits        the same on every rank and in every run.
//   Not finite  a NaN or an infinity makes the elements that are encoded together with it NaN or
//               infinite on every rank, and is not kept for the next call.
//   Memory      scratch and state are counted as kCommunication, allocated by the constructor.
//   Threads     one at a time, as the communicators.
//   Errors      those of the communicators.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/collective/communicator.h"
#include "lib/collective/compress/codec.h"
#include "lib/device/device.h"

namespace gxp {

// The two groups of a hierarchical collective: the ranks of this host, which fast links join, and
// the ranks with the same place on each host, which slow links join.

// Ranks are world_size = intra_host * inter_host; this rank is number intra_host.rank() of host
// inter_host.rank(). If each group owns a transport and a thread, traffic within hosts and between
// hosts overlaps; groups from split_by_host() share one of both.
struct HostGroups {
  Communicator* all = nullptr;  // borrowed
  std::unique_ptr<Communicator> intra_host;
  std::unique_ptr<Communicator> inter_host;
};

// By comm.hosts(), or by `hosts`, the host of each rank numbered from 0. All ranks call it; `comm`
// outlives the groups. Throws kUnavailable if the hosts have unequal numbers of ranks.
HostGroups split_by_host(Communicator& comm);
HostGroups split_by_host(Communicator& comm, std::span<const int> hosts);

struct CompressionOptions {
  bool error_feedback = true;
  size_t piece_bytes = 4 << 20;  // of the buffer, in flight at a time: unit of pipelining
};

class CompressedAllReduce {
 public:
  // For buffers of `count` elements of f32, f16 or bf16; kUnavailable for other types. `codec`,
  // `groups` and `device` outlive the object; objects may share them. All ranks pass the same.
  CompressedAllReduce(const Codec& codec, const CompressionOptions& options, size_t count,
                      DType dtype, HostGroups& groups, Device& device);

  // In place, as Communicator::all_reduce; kSum or kAvg over all ranks.
  void all_reduce(Memory data, ReduceOp op);

 private:
  // The parts of one round: for each host a part of the buffer, which that host's rank sums.
  struct Piece {
    std::vector<Range> parts;
    Range all;                 // of the buffer; within the host this is reduced and gathered
    size_t sent_residual = 0;  // where the residuals of the parts, and of this rank's sum, begin
    size_t sum_residual = 0;
  };
  // Pieces are in different stages at the same time, each with its own memory.
  struct Flight {
    Memory leaving, arriving, sums;  // one slot for each host
    Pending intra_host, scattered, gathered;
  };
  static constexpr size_t kFlights = 5;

  [[nodiscard]] std::vector<Piece> cut_into_pieces() const;
  void allocate(Device& device);
  template <class Act>
  void guard(const Act& act);

  // Stages: each waits for the one before it.
  void start_intra_host(const Piece& piece, Flight& flight);
  void start_scatter(const Piece& piece, Flight& flight);
  void start_gather_of_sums(const Piece& piece, Flight& flight);
  void finish_gather(const Piece& piece, Flight& flight);

  void sum_tile(const Flight& flight, Range tile, size_t offset, float* sum) const;
  void encode_range(std::byte* out, Range range, float* kept) const;
  void decode_range(Range range, const std::byte* encoded) const;

  [[nodiscard]] Memory memory_of_range(Range range) const;
  [[nodiscard]] std::byte* slot(Memory slots, int host) const;
  [[nodiscard]] float* residual(const Buffer& buffer, size_t at) const;
  [[nodiscard]] Flight& flight(size_t piece) { return flights_[piece % kFlights]; }
  [[nodiscard]] int host() const { return groups_.inter_host->rank(); }
  [[nodiscard]] int hosts() const { return groups_.inter_host->world_size(); }
  [[nodiscard]] size_t exchanged_bytes() const { return slot_bytes_ * size_t(hosts()); }

  const Codec& codec_;
  CompressionOptions options_;
  size_t count_;
  DType dtype_;
  HostGroups& groups_;
  std::vector<Piece> pieces_;
  size_t slot_bytes_ = 0;  // of the largest part, encoded
  std::array<Flight, kFlights> flights_;
  Buffer slots_;
  Buffer sent_residual_;  // f32; empty without error feedback
  Buffer sum_residual_;
  // The call that runs:
  Memory data_;
  double factor_ = 1;
};

}  // namespace gxp

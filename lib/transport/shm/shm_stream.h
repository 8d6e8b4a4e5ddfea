// Bytes to and from a rank of the same host, through a ring each way in shared memory.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lib/base/fd.h"
#include "lib/transport/arena/shared_arena.h"
#include "lib/transport/arena/shm_segment.h"
#include "lib/transport/context.h"
#include "lib/transport/shm/shm_ring.h"
#include "lib/transport/stream/byte_stream.h"

namespace gxp {

// The layout of a rank's segment: its bell, and a ring from every rank of the host. Ranks are
// counted within the host here.
struct ShmLayout {
  explicit ShmLayout(int ranks);
  [[nodiscard]] size_t ring_offset(int from) const;

  size_t slot_bytes;
  size_t ring_bytes;
  size_t bytes;
};

ShmDoorbell& bell_of(const ShmSegment& segment);

class ShmStream : public ByteStream {
 public:
  // `out` is the ring in `theirs`, the peer's segment, and `in` the one in this rank's, which
  // outlives the stream. Only bells are sent over `socket`; its end-of-file means that the peer has
  // ended.
  ShmStream(ShmRing out, ShmRing in, ShmSegment theirs, Fd socket)
      : theirs_(std::move(theirs)), out_(out), in_(in), socket_(std::move(socket)) {}

  size_t write_some(ConstMemory head, ConstMemory body) override;
  size_t read_some(Memory target) override;
  size_t deliver_some(PendingMessage& receive) override;
  std::string_view closed() const override { return closed_ ? "closed its connection" : ""; }
  void wake_peer() override { bell_of(theirs_).ring(socket_.get()); }
  void shut_down() noexcept override;

  [[nodiscard]] int socket() const { return socket_.get(); }
  // Takes what a peer has rung with from the socket, and notices its end.
  void read_bells();

 private:
  void release(size_t count);

  ShmSegment theirs_;
  ShmRing out_;
  ShmRing in_;
  Fd socket_;
  bool closed_ = false;
};

// The links of this rank to the others of its host.
struct ShmPeers {
  ShmSegment mine;                                  // outlives the streams
  std::vector<std::unique_ptr<ShmStream>> streams;  // by rank, null where there is none
  std::unique_ptr<SharedArena> arena;
};

// All ranks call it; those that `joins` are of one host. Errors: kPeer, kIo.
ShmPeers connect_shm_streams(const TransportContext& context, const JoinedPairs& joins);

}  // namespace gxp

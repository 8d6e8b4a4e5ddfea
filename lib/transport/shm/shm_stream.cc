#include "lib/transport/shm/shm_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/net/socket/unix_socket.h"
#include "lib/transport/backoff.h"
#include "lib/transport/stream/local_mesh.h"

namespace gxp {

namespace {

// Slots that stay in L2 while one rank fills and the other empties them.
constexpr size_t kSlotBytes = 64 << 10;
constexpr size_t kMinSlotBytes = 4 << 10;
constexpr size_t kSegmentBytes = 8 << 20;
constexpr size_t kBellBytes = 4096;

std::string name_of(size_t rank) { return fmt::format("rank {}", rank); }

// Every rank's segment of `bytes`, mapped, for `mine`; `sockets[rank]` leads to each rank of this
// host, and is invalid for this one and for those elsewhere.
std::vector<ShmSegment> exchange_segments(const TransportContext& context, const ShmSegment& mine,
                                          const std::vector<Fd>& sockets, size_t bytes) {
  std::vector<ShmSegment> theirs(sockets.size());
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    if (sockets[peer].valid())
      send_fd(sockets[peer].get(), mine.fd(), name_of(peer), context.deadline);
  }
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    if (sockets[peer].valid())
      theirs[peer] =
          ShmSegment::map(receive_fd(sockets[peer].get(), name_of(peer), context.deadline), bytes);
  }
  return theirs;
}

std::unique_ptr<SharedArena> share_arena(const TransportContext& context,
                                         const std::vector<Fd>& sockets) {
  const auto peers =
      std::count_if(sockets.begin(), sockets.end(), [](const Fd& s) { return s.valid(); });
  const int ranks = int(peers) + 1;
  const size_t bytes = context.shm.empty() ? SharedArena::segment_bytes(ranks)
                                           : context.shm[size_t(context.rank)].arena_bytes;
  ShmSegment mine = ShmSegment::create(bytes);
  if (context.use_cma) SharedArena::sign(mine, ranks);
  std::vector<ShmSegment> segments = exchange_segments(context, mine, sockets, bytes);
  segments[size_t(context.rank)] = std::move(mine);
  std::vector<pid_t> processes(sockets.size());
  for (size_t peer = 0; context.use_cma && peer < sockets.size(); ++peer) {
    if (sockets[peer].valid()) processes[peer] = peer_process(sockets[peer].get());
  }
  auto arena = std::make_unique<SharedArena>(context.rank, std::move(segments), processes,
                                             is_oversubscribed(context));
  arena->use_channels(DescriptorChannels(context.rank, sockets, context.deadline));
  return arena;
}

}  // namespace

ShmLayout::ShmLayout(int ranks)
    : slot_bytes(std::clamp(std::bit_floor(kSegmentBytes / (size_t(ranks) * ShmRing::kSlots)),
                            kMinSlotBytes, kSlotBytes)),
      ring_bytes(round_up(ShmRing::footprint(slot_bytes), size_t{4096})),
      bytes(kBellBytes + size_t(ranks) * ring_bytes) {}

size_t ShmLayout::ring_offset(int from) const { return kBellBytes + size_t(from) * ring_bytes; }

ShmDoorbell& bell_of(const ShmSegment& segment) {
  return *reinterpret_cast<ShmDoorbell*>(segment.memory().data);
}

size_t ShmStream::write_some(ConstMemory head, ConstMemory body) {
  const size_t count = out_.write_some(head, body);
  if (count > 0) wake_peer();
  return count;
}

size_t ShmStream::read_some(Memory target) {
  const ConstMemory front = in_.front();
  const size_t count = std::min(front.bytes, target.bytes);
  if (count > 0) std::memcpy(target.data, front.data, count);
  release(count);
  return count;
}

size_t ShmStream::deliver_some(PendingMessage& receive) {
  const ConstMemory front = in_.front();
  const size_t count = std::min(front.bytes, receive.bytes - receive.moved);
  if (count > 0) deliver(receive, front.slice(0, count));
  release(count);
  return count;
}

void ShmStream::release(size_t count) {
  if (count > 0 && in_.release(count)) wake_peer();
}

void ShmStream::shut_down() noexcept { ::shutdown(socket_.get(), SHUT_RDWR); }

void ShmStream::read_bells() {
  std::array<std::byte, 64> bells;
  const ssize_t count = ::recv(socket_.get(), bells.data(), bells.size(), MSG_DONTWAIT);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) closed_ = true;
}

ShmPeers connect_shm_streams(const TransportContext& context, const JoinedPairs& joins) {
  std::vector<Fd> sockets = connect_local_mesh(context, "shm", joins);
  std::vector<int> places;  // of each rank among those of this host
  int ranks = 0;
  for (size_t rank = 0; rank < sockets.size(); ++rank) {
    places.push_back(ranks);
    if (sockets[rank].valid() || int(rank) == context.rank) ++ranks;
  }
  const ShmLayout layout(ranks);
  ShmPeers peers{ShmSegment::create(layout.bytes), {}, nullptr};
  peers.streams.resize(sockets.size());
  std::vector<ShmSegment> theirs = exchange_segments(context, peers.mine, sockets, layout.bytes);
  peers.arena = share_arena(context, sockets);
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    if (!sockets[peer].valid()) continue;
    const size_t out = layout.ring_offset(places[size_t(context.rank)]);
    const size_t in = layout.ring_offset(places[peer]);
    theirs[peer].prefault(out, layout.ring_bytes);
    peers.mine.prefault(in, layout.ring_bytes);
    const ShmRing out_ring(theirs[peer].memory().data + out, layout.slot_bytes);
    const ShmRing in_ring(peers.mine.memory().data + in, layout.slot_bytes);
    peers.streams[peer] = std::make_unique<ShmStream>(out_ring, in_ring, std::move(theirs[peer]),
                                                      std::move(sockets[peer]));
  }
  return peers;
}

}  // namespace gxp

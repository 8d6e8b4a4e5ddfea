#include "lib/transport/shm.h"

#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/net/unix_socket.h"
#include "lib/transport/backoff.h"
#include "lib/transport/mesh.h"
#include "lib/transport/shm_ring.h"
#include "lib/transport/shm_segment.h"
#include "lib/transport/stream.h"

namespace gxp {

namespace {

// Slots that stay in L2 while one rank fills and the other empties them.
constexpr size_t kSlotBytes = 64 << 10;
constexpr size_t kMinSlotBytes = 4 << 10;
constexpr size_t kSegmentBytes = 8 << 20;
constexpr size_t kBellBytes = 4096;
constexpr std::chrono::milliseconds kLook{20};         // between two looks at the sockets
constexpr std::chrono::microseconds kYieldTime{1000};  // before sleeping

// Where things lie in a rank's segment.
struct Layout {
  explicit Layout(int world_size)
      : slot_bytes(
            std::clamp(std::bit_floor(kSegmentBytes / (size_t(world_size) * ShmRing::kSlots)),
                       kMinSlotBytes, kSlotBytes)),
        ring_bytes(round_up(ShmRing::footprint(slot_bytes), size_t{4096})),
        bytes(kBellBytes + size_t(world_size) * ring_bytes) {}
  // The ring that `from` writes into the segment's owner.
  [[nodiscard]] size_t ring_offset(int from) const {
    return kBellBytes + size_t(from) * ring_bytes;
  }

  size_t slot_bytes;
  size_t ring_bytes;
  size_t bytes;
};

ShmDoorbell& bell_of(const ShmSegment& segment) {
  return *reinterpret_cast<ShmDoorbell*>(segment.memory().data);
}

class ShmStream : public ByteStream {
 public:
  // `mine` is this rank's segment, which outlives the stream.
  ShmStream(const Layout& layout, int rank, int peer, const ShmSegment& mine, ShmSegment theirs,
            Fd socket)
      : theirs_(std::move(theirs)),
        out_(theirs_.memory().data + layout.ring_offset(rank), layout.slot_bytes),
        in_(mine.memory().data + layout.ring_offset(peer), layout.slot_bytes),
        peer_bell_(bell_of(theirs_)),
        socket_(std::move(socket)) {
    theirs_.prefault(layout.ring_offset(rank), layout.ring_bytes);
    mine.prefault(layout.ring_offset(peer), layout.ring_bytes);
  }

  size_t write_some(ConstMemory head, ConstMemory body) override {
    const size_t count = out_.write_some(head, body);
    if (count > 0) peer_bell_.ring();
    return count;
  }
  size_t read_some(Memory target) override {
    bool released = false;
    const size_t count = in_.read_some(target, &released);
    if (released) peer_bell_.ring();
    return count;
  }
  std::string_view closed() const override { return closed_ ? "closed its connection" : ""; }
  void shut_down() noexcept override { ::shutdown(socket_.get(), SHUT_RDWR); }

  [[nodiscard]] int socket() const { return socket_.get(); }
  void set_closed() { closed_ = true; }

 private:
  ShmSegment theirs_;
  ShmRing out_;
  ShmRing in_;
  ShmDoorbell& peer_bell_;
  Fd socket_;  // carries nothing after the set-up
  bool closed_ = false;
};

class ShmSleeper : public Sleeper {
 public:
  ShmSleeper(ShmSegment mine, std::vector<ShmStream*> streams)
      : mine_(std::move(mine)), streams_(std::move(streams)) {}
  void prepare() override { prepared_ = bell_of(mine_).prepare(); }
  void sleep(std::span<const Interest> interests, Deadline deadline) override {
    const bool rung = bell_of(mine_).sleep(
        prepared_, Deadline::after(std::min<Deadline::Duration>(kLook, deadline.remaining())));
    if (!rung) look_for_ends(interests);
  }
  void done() override { bell_of(mine_).done(); }
  void wake() noexcept override { bell_of(mine_).ring_always(); }

 private:
  void look_for_ends(std::span<const Interest> interests);

  ShmSegment mine_;
  std::vector<ShmStream*> streams_;
  std::vector<pollfd> entries_;
  uint32_t prepared_ = 0;
};

void ShmSleeper::look_for_ends(std::span<const Interest> interests) {
  entries_.clear();
  for (const Interest& interest : interests) {
    entries_.push_back({streams_[size_t(interest.peer)]->socket(), POLLIN, 0});
  }
  if (::poll(entries_.data(), entries_.size(), 0) <= 0) return;
  // Nothing is ever sent over these sockets, so whatever there is to read is the end.
  for (size_t i = 0; i < interests.size(); ++i) {
    if (entries_[i].revents != 0) streams_[size_t(interests[i].peer)]->set_closed();
  }
}

// Not to be guessed, so that nobody can take it first.
std::string random_name() {
  std::array<unsigned char, 16> random{};
  std::array<char, 2 * random.size() + 1> text{};
  randombytes_buf(random.data(), random.size());
  return fmt::format("gxp-{}",
                     sodium_bin2hex(text.data(), text.size(), random.data(), random.size()));
}

std::vector<Fd> connect_locally(const TransportContext& context) {
  const std::string name = random_name();
  return connect_mesh(
      context, {"shm", listen_unix(name, std::max(64, context.world_size)), name, connect_unix});
}

}  // namespace

Support supports_shm(const TransportContext& context, const Hosts& hosts) {
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] == hosts[size_t(context.rank)] && hosts[rank] != "unknown") continue;
    return {false, fmt::format("ranks {} and {} are on different hosts, or in containers without a "
                               "common network namespace",
                               context.rank, rank)};
  }
  return {true, "same host"};
}

std::unique_ptr<Transport> make_shm_transport(const TransportContext& context, const Hosts&) {
  const Layout layout(context.world_size);
  std::vector<Fd> sockets = connect_locally(context);
  ShmSegment mine = ShmSegment::create(layout.bytes);
  std::vector<std::unique_ptr<ByteStream>> streams(sockets.size());
  std::vector<ShmStream*> shm_streams(sockets.size());
  const auto name_of = [](size_t peer) { return fmt::format("rank {}", peer); };
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    if (sockets[peer].valid()) {
      send_fd(sockets[peer].get(), mine.fd(), name_of(peer), context.deadline);
    }
  }
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    if (!sockets[peer].valid()) continue;
    Fd fd = receive_fd(sockets[peer].get(), name_of(peer), context.deadline);
    auto stream = std::make_unique<ShmStream>(layout, context.rank, int(peer), mine,
                                              ShmSegment::map(std::move(fd), layout.bytes),
                                              std::move(sockets[peer]));
    shm_streams[peer] = stream.get();
    streams[peer] = std::move(stream);
  }
  return std::make_unique<StreamTransport>(StreamTransportParts{
      .name = "shm",
      .rank = context.rank,
      .streams = std::move(streams),
      .sleeper = std::make_unique<ShmSleeper>(std::move(mine), std::move(shm_streams)),
      .backoff = Backoff(context.world_size > usable_cpus(), kYieldTime),
      .store = context.store});
}

}  // namespace gxp

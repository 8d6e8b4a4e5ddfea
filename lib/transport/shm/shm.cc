#include "lib/transport/shm/shm.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "lib/transport/backoff.h"
#include "lib/transport/shm/shm_stream.h"
#include "lib/transport/stream/stream.h"

namespace gxp {

namespace {

constexpr std::chrono::milliseconds kLook{20};         // between two looks at the sockets
constexpr std::chrono::microseconds kYieldTime{1000};  // before sleeping

class ShmSleeper : public Sleeper {
 public:
  ShmSleeper(ShmSegment mine, std::vector<ShmStream*> streams)
      : mine_(std::move(mine)), streams_(std::move(streams)) {}
  void prepare() override { prepared_ = bell_of(mine_).prepare(ShmDoorbell::kOnFutex); }
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
  for (size_t i = 0; i < interests.size(); ++i) {
    if (entries_[i].revents != 0) streams_[size_t(interests[i].peer)]->read_bells();
  }
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

std::unique_ptr<Transport> make_shm_transport(const TransportContext& context, const Hosts& hosts) {
  ShmPeers peers = connect_shm_streams(context, hosts);
  std::vector<std::unique_ptr<ByteStream>> streams;
  std::vector<ShmStream*> shm_streams;
  for (auto& stream : peers.streams) {
    shm_streams.push_back(stream.get());
    streams.push_back(std::move(stream));
  }
  return std::make_unique<StreamTransport>(StreamTransportParts{
      .name = "shm",
      .rank = context.rank,
      .streams = std::move(streams),
      .sleeper = std::make_unique<ShmSleeper>(std::move(peers.mine), std::move(shm_streams)),
      .backoff = Backoff(is_crowded(context, hosts), kYieldTime),
      .hosts = number_hosts(hosts),
      .space = std::move(peers.space),
      .store = context.store});
}

}  // namespace gxp

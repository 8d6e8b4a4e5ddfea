#include "lib/transport/shm_and_tcp.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/transport/backoff.h"
#include "lib/transport/shm/shm_stream.h"
#include "lib/transport/stream/stream.h"
#include "lib/transport/tcp/tcp.h"
#include "lib/transport/tcp/tcp_sleeper.h"

namespace gxp {

namespace {

class ShmAndTcpSleeper : public Sleeper {
 public:
  // `local` and `remote` by rank, null where there is none; they outlive the sleeper.
  ShmAndTcpSleeper(ShmSegment mine, std::vector<ShmStream*> local,
                   std::unique_ptr<TcpSleeper> remote)
      : mine_(std::move(mine)), local_(std::move(local)), remote_(std::move(remote)) {
    std::erase(local_, nullptr);
  }
  void look(size_t open) override { remote_->look(open); }
  void prepare() override { bell_of(mine_).prepare(ShmDoorbell::kOnSockets); }
  void sleep(std::span<const Interest> interests, Deadline deadline) override;
  void done() override { bell_of(mine_).done(); }
  void wake() noexcept override { remote_->wake(); }

 private:
  ShmSegment mine_;
  std::vector<ShmStream*> local_;
  std::unique_ptr<TcpSleeper> remote_;
  std::vector<pollfd> entries_;
};

// Any peer of this host may ring, so all their sockets are waited for, but those that have ended.
void ShmAndTcpSleeper::sleep(std::span<const Interest> interests, Deadline deadline) {
  entries_.clear();
  for (const ShmStream* stream : local_) {
    entries_.push_back({stream->closed().empty() ? stream->socket() : -1, POLLIN, 0});
  }
  remote_->add_entries(interests, entries_);
  ::poll(entries_.data(), entries_.size(), TcpSleeper::longest_sleep_ms(deadline));
  for (size_t i = 0; i < local_.size(); ++i) {
    if (entries_[i].revents != 0) local_[i]->read_bells();
  }
  remote_->end_sleep(interests);
}

}  // namespace

Support supports_shm_and_tcp(const TransportContext& context, const Hosts& hosts) {
  const std::vector<int> numbers = number_hosts(hosts);
  if (numbers.empty()) return {false, "all ranks are on one host"};
  const int count = 1 + *std::max_element(numbers.begin(), numbers.end());
  if (count == int(hosts.size())) return {false, "no two ranks share a host"};
  if (std::find(hosts.begin(), hosts.end(), "unknown") != hosts.end()) {
    return {false, "some ranks cannot tell which host they are on"};
  }
  const Support tcp = supports_tcp(context, hosts);
  if (!tcp) return tcp;
  return {true, fmt::format("shared memory inside {} hosts, TCP between them", count)};
}

std::unique_ptr<Transport> make_shm_and_tcp_transport(const TransportContext& context,
                                                      const Hosts& hosts) {
  auto common = std::make_unique<TcpCommon>();
  ShmPeers local = connect_shm_streams(context, hosts);
  auto remote = connect_tcp_streams(context, hosts, TcpPeers::kOnOtherHosts, *common);
  std::vector<std::unique_ptr<ByteStream>> streams(hosts.size());
  std::vector<ShmStream*> shm_streams(hosts.size());
  std::vector<TcpStream*> tcp_streams(hosts.size());
  for (size_t peer = 0; peer < hosts.size(); ++peer) {
    shm_streams[peer] = local.streams[peer].get();
    tcp_streams[peer] = remote[peer].sockets;
    if (local.streams[peer]) streams[peer] = std::move(local.streams[peer]);
    if (remote[peer].stream) streams[peer] = std::move(remote[peer].stream);
  }
  auto tcp_sleeper = std::make_unique<TcpSleeper>(std::move(tcp_streams), std::move(common));
  return std::make_unique<StreamTransport>(StreamTransportParts{
      .name = "shm+tcp",
      .rank = context.rank,
      .streams = std::move(streams),
      .sleeper = std::make_unique<ShmAndTcpSleeper>(std::move(local.mine), std::move(shm_streams),
                                                    std::move(tcp_sleeper)),
      .backoff = Backoff(is_crowded(context, hosts), kTcpYieldTime),
      .hosts = number_hosts(hosts),
      .space = std::move(local.space),
      .store = context.store});
}

}  // namespace gxp

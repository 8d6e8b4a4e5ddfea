#include "lib/transport/tcp/tcp_links.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "lib/base/error.h"
#include "lib/transport/stream/stream_link.h"

namespace gxp {

namespace {

constexpr size_t kFewStreams = 4;
constexpr std::chrono::milliseconds kSilenceLook{500};
// Before sleeping: several times what a sleep and a wake-up cost (17 to 57 us).
constexpr std::chrono::microseconds kTcpYieldTime{200};

// Reported when something new happens, not as long as it lasts.
constexpr uint32_t kEdges = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

void watch(const Fd& events, int fd, uint32_t kinds, uint64_t data) {
  epoll_event event{.events = kinds, .data = {.u64 = data}};
  check_sys(epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &event), "watch a TCP connection");
}

std::vector<std::unique_ptr<PeerLink>> make_links(std::vector<TcpPeer>& peers) {
  std::vector<std::unique_ptr<PeerLink>> links(peers.size());
  for (size_t peer = 0; peer < peers.size(); ++peer) {
    if (peers[peer].stream)
      links[peer] = std::make_unique<StreamLink>(std::move(peers[peer].stream));
  }
  return links;
}

}  // namespace

TcpLinks::TcpLinks(std::vector<TcpPeer> peers, std::unique_ptr<TcpCommon> common)
    : LinkGroup(make_links(peers)), common_(std::move(common)) {
  for (const TcpPeer& peer : peers) streams_.push_back(peer.sockets);
  watch_all();
}

// Each look is a system call, so 100 pauses would be 30 us: where two ranks share a CPU, though not
// all are taken by ranks, 8 bytes take 66 us with pauses and 13 us without.
WaitPolicy TcpLinks::wait_policy() const { return {true, kTcpYieldTime}; }

void TcpLinks::watch_all() {
  const auto peers =
      streams_.size() - size_t(std::count(streams_.begin(), streams_.end(), nullptr));
  if (peers <= kFewStreams) return;
  events_ = Fd(int(check_sys(epoll_create1(EPOLL_CLOEXEC), "make an event queue")));
  for (size_t peer = 0; peer < streams_.size(); ++peer) {
    if (streams_[peer] == nullptr) continue;
    for (size_t i = 0; i < streams_[peer]->connections(); ++i) {
      watch(events_, streams_[peer]->socket(i), kEdges, peer << 32 | i);
    }
  }
}

void TcpLinks::before_look(size_t open) {
  common_->by_events = events_.valid() && open > kFewStreams;
  if (common_->by_events) take_events();
}

void TcpLinks::take_events() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(events_.get(), events.data(), int(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[size_t(i)];
    const bool failed = (event.events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
    streams_[event.data.u64 >> 32]->set_ready(uint32_t(event.data.u64),
                                              failed || (event.events & EPOLLIN) != 0,
                                              failed || (event.events & EPOLLOUT) != 0);
  }
}

void TcpLinks::add_handles(std::span<const Interest> interests, std::vector<pollfd>& entries) {
  if (common_->by_events) {
    entries.push_back({events_.get(), POLLIN, 0});
    return;
  }
  for (const Interest& interest : interests) {
    const TcpStream* stream = streams_[size_t(interest.peer)];
    if (stream == nullptr) continue;
    if (interest.to_receive) entries.push_back({stream->next_to_read(), POLLIN, 0});
    if (interest.to_send) entries.push_back({stream->next_to_write(), POLLOUT, 0});
  }
}

void TcpLinks::after_poll(std::span<const Interest> interests,
                          std::span<const pollfd> /*entries*/) {
  const auto now = Deadline::Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kSilenceLook;
  for (const Interest& interest : interests) {
    TcpStream* stream = streams_[size_t(interest.peer)];
    if (stream != nullptr) stream->look_for_silence();
  }
}

}  // namespace gxp

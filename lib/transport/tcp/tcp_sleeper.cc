#include "lib/transport/tcp/tcp_sleeper.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

namespace {

constexpr size_t kFewStreams = 4;
constexpr std::chrono::milliseconds kSleeperLook{500};

// Reported when something new happens, not as long as it lasts.
constexpr uint32_t kEdges = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

void watch(const Fd& events, int fd, uint32_t kinds, uint64_t data) {
  epoll_event event{.events = kinds, .data = {.u64 = data}};
  check_sys(epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &event), "watch a TCP connection");
}

}  // namespace

TcpSleeper::TcpSleeper(std::vector<TcpStream*> streams, std::unique_ptr<TcpCommon> common)
    : streams_(std::move(streams)),
      common_(std::move(common)),
      wake_(int(check_sys(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an event descriptor"))) {
  const auto peers =
      streams_.size() - size_t(std::count(streams_.begin(), streams_.end(), nullptr));
  if (peers <= kFewStreams) return;
  events_ = Fd(int(check_sys(epoll_create1(EPOLL_CLOEXEC), "make an event queue")));
  for (size_t peer = 0; peer < streams_.size(); ++peer) {
    if (streams_[peer] == nullptr) continue;
    for (size_t lane = 0; lane < streams_[peer]->lanes(); ++lane) {
      watch(events_, streams_[peer]->socket(lane), kEdges, peer << 32 | lane);
    }
  }
}

void TcpSleeper::look(size_t open) {
  common_->by_events = events_.valid() && open > kFewStreams;
  if (common_->by_events) take_events();
}

void TcpSleeper::take_events() {
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

void TcpSleeper::add_entries(std::span<const Interest> interests,
                             std::vector<pollfd>& entries) const {
  entries.push_back({wake_.get(), POLLIN, 0});
  if (common_->by_events) {
    entries.push_back({events_.get(), POLLIN, 0});
    return;
  }
  for (const Interest& interest : interests) {
    const TcpStream* stream = streams_[size_t(interest.peer)];
    if (stream == nullptr) continue;
    if (interest.to_read) entries.push_back({stream->next_to_read(), POLLIN, 0});
    if (interest.to_write) entries.push_back({stream->next_to_write(), POLLOUT, 0});
  }
}

int TcpSleeper::longest_sleep_ms(Deadline deadline) {
  return std::min(int(kSleeperLook.count()), deadline.remaining_ms());
}

void TcpSleeper::end_sleep(std::span<const Interest> interests) {
  const auto now = Deadline::Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kSleeperLook;
  for (const Interest& interest : interests) {
    TcpStream* stream = streams_[size_t(interest.peer)];
    if (stream != nullptr) stream->look_for_silence();
  }
}

void TcpSleeper::sleep(std::span<const Interest> interests, Deadline deadline) {
  entries_.clear();
  add_entries(interests, entries_);
  ::poll(entries_.data(), entries_.size(), longest_sleep_ms(deadline));
  end_sleep(interests);
}

void TcpSleeper::wake() noexcept { eventfd_write(wake_.get(), 1); }

}  // namespace gxp

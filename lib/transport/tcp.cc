#include "lib/transport/tcp.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/net/identity.h"
#include "lib/net/socket.h"
#include "lib/transport/backoff.h"
#include "lib/transport/mesh.h"
#include "lib/transport/stream.h"

namespace gxp {

namespace {

// Polling twice and more costs less than a sleep and a wake-up (17 to 57 us).
constexpr std::chrono::microseconds kYieldTime{50};
// On the loop-back interface the data then stays in cache: 18 GB/s instead of 6 with windows of
// several MB. Real networks keep the kernel's own tuning.
constexpr int kLoopbackBufferBytes = 256 << 10;
constexpr size_t kReadAheadBytes = 4096;

class TcpStream : public ByteStream {
 public:
  explicit TcpStream(Fd socket) : socket_(std::move(socket)) {}

  size_t write_some(ConstMemory head, ConstMemory body) override;
  size_t read_some(Memory target) override;
  std::string_view closed() const override { return closed_; }
  void shut_down() noexcept override { ::shutdown(socket_.get(), SHUT_RDWR); }
  [[nodiscard]] int socket() const { return socket_.get(); }

 private:
  size_t keep_error();

  Fd socket_;
  std::string closed_;
  // What arrived behind the bytes asked for: the next header, often with its message.
  std::array<std::byte, kReadAheadBytes> ahead_;
  size_t ahead_begin_ = 0;
  size_t ahead_end_ = 0;
};

// Notes why the last call failed, unless it would merely have waited.
size_t TcpStream::keep_error() {
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  const bool ended = errno == ECONNRESET || errno == EPIPE;
  closed_ = ended ? "closed its connection" : "is out of reach: " + system_text(errno);
  return 0;
}

size_t TcpStream::write_some(ConstMemory head, ConstMemory body) {
  std::array<iovec, 2> pieces{iovec{const_cast<std::byte*>(head.data), head.bytes},
                              iovec{const_cast<std::byte*>(body.data), body.bytes}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t count = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return count >= 0 ? size_t(count) : keep_error();
}

size_t TcpStream::read_some(Memory target) {
  if (ahead_begin_ < ahead_end_) {
    const size_t count = std::min(target.bytes, ahead_end_ - ahead_begin_);
    std::memcpy(target.data, ahead_.data() + ahead_begin_, count);
    ahead_begin_ += count;
    return count;
  }
  std::array<iovec, 2> pieces{iovec{target.data, target.bytes},
                              iovec{ahead_.data(), ahead_.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t received = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (received < 0) return keep_error();
  if (received == 0) closed_ = "closed its connection";
  const size_t count = std::min(size_t(received), target.bytes);
  ahead_begin_ = 0;
  ahead_end_ = size_t(received) - count;
  return count;
}

class TcpSleeper : public Sleeper {
 public:
  explicit TcpSleeper(std::vector<int> sockets)
      : sockets_(std::move(sockets)),
        wake_(int(check_sys(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an event descriptor"))) {}
  void prepare() override {}
  void sleep(std::span<const Interest> interests, Deadline deadline) override {
    entries_.assign(1, {wake_.get(), POLLIN, 0});
    for (const Interest& interest : interests) {
      const short events =
          short((interest.to_read ? POLLIN : 0) | (interest.to_write ? POLLOUT : 0));
      entries_.push_back({sockets_[size_t(interest.peer)], events, 0});
    }
    ::poll(entries_.data(), entries_.size(), deadline.remaining_ms());
  }
  void done() override {}
  // Stays readable: an abort is for good.
  void wake() noexcept override { eventfd_write(wake_.get(), 1); }

 private:
  std::vector<int> sockets_;
  Fd wake_;
  std::vector<pollfd> entries_;
};

void set_option(int socket, int level, int name, int value) {
  check_sys(setsockopt(socket, level, name, &value, sizeof value), "set up a TCP connection");
}

// TCP_USER_TIMEOUT is left alone: it would also end the connection to a rank that computes for
// longer and lets its receive window fill up. Data that nobody acknowledges meets wait()'s
// deadline.
void set_up(int socket, bool loopback) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 4);   // s of silence before the first probe
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);  // s
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  if (!loopback) return;
  set_option(socket, SOL_SOCKET, SO_SNDBUF, kLoopbackBufferBytes);
  set_option(socket, SOL_SOCKET, SO_RCVBUF, kLoopbackBufferBytes);
}

// The local address of the interface that leads to `host`. Connecting a datagram socket sends
// nothing.
std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), "9", &hints, &found);
  if (error != 0) fail(ErrorKind::kPeer, "look up {}: {}", host, gai_strerror(error));
  std::string address;
  for (const addrinfo* at = found; at != nullptr && address.empty(); at = at->ai_next) {
    const Fd probe(::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (probe.valid() && ::connect(probe.get(), at->ai_addr, at->ai_addrlen) == 0) {
      address = local_endpoint(probe.get()).host;
    }
  }
  freeaddrinfo(found);
  if (address.empty()) fail(ErrorKind::kPeer, "find a way to {}: no route", host);
  return address;
}

struct Listening {
  Fd socket;
  std::string address;
};

Listening listen_for_peers(const TransportContext& context, const Hosts& hosts) {
  const bool one_host = std::all_of(hosts.begin(), hosts.end(),
                                    [&](const std::string& host) { return host == hosts[0]; });
  const bool beside_master = context.host == hosts[0];
  std::string address = "127.0.0.1";
  if (!one_host)
    address = beside_master ? context.master_addr : address_towards(context.master_addr);
  // The master's name may stand for an address that this host itself does not have.
  Fd socket = listen_tcp({!one_host && beside_master ? "" : address, 0});
  const int port = local_endpoint(socket.get()).port;
  return {std::move(socket), to_string(Endpoint{address, port})};
}

}  // namespace

Support supports_tcp(const TransportContext& context, const Hosts& hosts) {
  for (const std::string& host : hosts) {
    if (host == hosts[0] || !is_loopback(context.master_addr)) continue;
    return {false, fmt::format("ranks are on several hosts, which cannot reach {}; set MASTER_ADDR",
                               context.master_addr)};
  }
  return {true, "works everywhere"};
}

std::unique_ptr<Transport> make_tcp_transport(const TransportContext& context, const Hosts& hosts) {
  Listening listening = listen_for_peers(context, hosts);
  const auto connect = [](const std::string& address, std::string_view peer, Deadline deadline) {
    return connect_tcp(parse_endpoint(address), peer, deadline);
  };
  std::vector<Fd> sockets = connect_mesh(
      context, {"tcp", std::move(listening.socket), std::move(listening.address), connect});
  std::vector<std::unique_ptr<ByteStream>> streams(sockets.size());
  std::vector<int> descriptors(sockets.size(), -1);
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    if (!sockets[peer].valid()) continue;
    descriptors[peer] = sockets[peer].get();
    set_up(descriptors[peer], is_loopback(local_endpoint(descriptors[peer]).host));
    streams[peer] = std::make_unique<TcpStream>(std::move(sockets[peer]));
  }
  return std::make_unique<StreamTransport>(
      StreamTransportParts{.name = "tcp",
                           .rank = context.rank,
                           .streams = std::move(streams),
                           .sleeper = std::make_unique<TcpSleeper>(std::move(descriptors)),
                           .backoff = Backoff(true, kYieldTime),
                           .store = context.store});
}

}  // namespace gxp

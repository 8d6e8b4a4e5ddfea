#include "lib/net/socket/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <thread>

#include "lib/net/socket/resolve.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

constexpr auto kNamePatience = 10s;  // for the name to listen on

Address local_address(int socket) {
  Address address;
  check_sys(getsockname(socket, address.get(), &address.length), "ask for a socket's address");
  return address;
}

Endpoint to_endpoint(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    return {text.data(), ntohs(v4->sin_port)};
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  const std::string_view host = text.data();
  const std::string_view mapped = "::ffff:";  // IPv4 in a dual-stack socket
  const bool is_v4 = host.starts_with(mapped) && host.find('.') != std::string_view::npos;
  return {std::string(is_v4 ? host.substr(mapped.size()) : host), ntohs(v6->sin6_port)};
}

void set_option(int socket, int level, int option, int value) {
  check_sys(setsockopt(socket, level, option, &value, sizeof value), "set a socket option");
}

Fd make_socket(int family) {
  const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  return Fd(::socket(family, type, 0));  // invalid where the family is absent: the caller decides
}

// A listening socket, or an invalid one and errno in `error`.
Fd try_listen(const Address& address, int backlog, int& error) {
  Fd socket = make_socket(address.storage.ss_family);
  const auto failed = [&] {
    error = errno;
    return Fd();
  };
  if (!socket.valid()) return failed();
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.storage.ss_family == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.get(), address.get(), address.length) != 0) return failed();
  if (::listen(socket.get(), backlog) != 0) return failed();
  return socket;
}

// Linux may connect a socket to itself while nobody listens on a port of the ephemeral range.
bool is_connected_to_itself(int socket) {
  Address peer;
  if (getpeername(socket, peer.get(), &peer.length) != 0) return true;
  const Address local = local_address(socket);
  return local.length == peer.length && to_endpoint(local) == to_endpoint(peer);
}

// A connected socket, or an invalid one and errno in `error`.
Fd try_connect(const Address& address, Deadline deadline,
               const std::function<void(int socket)>& prepare, int& error) {
  Fd socket = make_socket(address.storage.ss_family);
  error = errno;
  if (!socket.valid()) return Fd();
  if (prepare) prepare(socket.get());
  error = 0;
  if (::connect(socket.get(), address.get(), address.length) != 0) error = errno;
  if (error == EINPROGRESS) {
    // A lost SYN is sent again after 1 s and 3 s; a fresh attempt after 5 s does as well.
    const auto patience = std::min<Deadline::Duration>(deadline.remaining(), 5s);
    const bool answered = wait_ready(socket.get(), POLLOUT, Deadline::after(patience));
    socklen_t size = sizeof error;
    check_sys(getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size), "ask for an error");
    if (!answered) error = ETIMEDOUT;
  }
  if (error == 0 && is_connected_to_itself(socket.get())) error = ECONNREFUSED;
  if (error != 0) return Fd();
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

std::string lower_case_text(int error) {
  std::string text = system_text(error);
  if (!text.empty()) text[0] = char(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

[[noreturn]] void fail_ended(std::string_view act, std::string_view peer) {
  const std::string message = fmt::format("{} {}: {}", act, peer, lower_case_text(errno));
  if (errno == ECONNRESET || errno == EPIPE) throw ConnectionClosed(ErrorKind::kPeer, message);
  throw Error(ErrorKind::kPeer, message);
}

bool must_wait(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", endpoint.host.empty() ? "*" : endpoint.host,
                     v6 ? "]" : "", endpoint.port);
}

Endpoint parse_endpoint(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view digits = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  const bool unclear = !bracketed && host.find(':') != std::string_view::npos;
  if (!whole || port < 0 || port > 65535 || host.empty() || unclear)
    fail(ErrorKind::kUsage, "read the address '{}': expected HOST:PORT or [IPV6]:PORT", text);
  return {std::string(host), port};
}

namespace {

// A listening socket; an invalid one if the port is taken.
Fd try_listen_on(const Endpoint& endpoint, int backlog) {
  std::string cause;
  auto addresses =
      resolve(endpoint.host, endpoint.port, true, Deadline::after(kNamePatience), cause);
  // All interfaces: the IPv6 wildcard serves IPv4 as well, so it goes first.
  if (endpoint.host.empty() && addresses.size() > 1 && addresses[0].storage.ss_family != AF_INET6)
    std::swap(addresses[0], addresses[1]);
  int error = 0;
  for (const Address& address : addresses) {
    Fd socket = try_listen(address, backlog, error);
    if (socket.valid()) return socket;
    if (error == EADDRINUSE) break;  // not to serve half of the interfaces
  }
  if (error == EADDRINUSE) return Fd();
  fail(ErrorKind::kIo, "listen on {}: {}", to_string(endpoint),
       error == 0 ? cause : lower_case_text(error));
}

}  // namespace

Fd listen_tcp(const Endpoint& endpoint, int backlog) {
  Fd socket = try_listen_on(endpoint, backlog);
  if (socket.valid()) return socket;
  fail(ErrorKind::kIo,
       "listen on {}: port {} is taken; choose another with MASTER_PORT or --master HOST:PORT",
       to_string(endpoint), endpoint.port);
}

PortRange parse_port_range(std::string_view text, std::string_view setting) {
  PortRange ports;
  if (text.empty()) return ports;
  const char* const end = text.data() + text.size();
  const auto [dash, no_first] = std::from_chars(text.data(), end, ports.first);
  const bool two = no_first == std::errc() && dash != end && *dash == '-';
  const auto [rest, no_last] = std::from_chars(two ? dash + 1 : end, end, ports.last);
  if (no_last != std::errc() || rest != end || ports.first < 1 || ports.last < ports.first ||
      ports.last > 65535)
    fail(ErrorKind::kConfig,
         "{}: must be two ports in ascending order, such as \"30000-30100\", is \"{}\"", setting,
         text);
  return ports;
}

Fd listen_tcp_within(const PortRange& ports, const std::string& host, int start) {
  if (ports == PortRange{}) return listen_tcp({host, 0});
  const int count = ports.last - ports.first + 1;
  for (int i = 0; i < count; ++i) {
    const int port = ports.first + (start + i) % count;
    Fd socket = try_listen_on({host, port}, kBacklog);
    if (socket.valid()) return socket;
  }
  fail(ErrorKind::kIo, "listen on {}: the ports {}-{} are all taken; each rank of a host needs one",
       host.empty() ? "*" : host, ports.first, ports.last);
}

Fd connect_tcp(const Endpoint& endpoint, std::string_view peer, Deadline deadline,
               const std::function<void(int socket)>& prepare) {
  std::string cause = "no answer";
  for (Deadline::Duration pause = 5ms;; pause = std::min<Deadline::Duration>(2 * pause, 250ms)) {
    for (const Address& address : resolve(endpoint.host, endpoint.port, false, deadline, cause)) {
      int error = 0;
      Fd socket = try_connect(address, deadline, prepare, error);
      if (socket.valid()) return socket;
      cause = lower_case_text(error);
    }
    if (deadline.expired())
      fail(ErrorKind::kPeer, "connect to {} at {}: {} after {:.3g} s", peer, to_string(endpoint),
           cause, deadline.seconds());
    std::this_thread::sleep_for(std::min(pause, deadline.remaining()));
  }
}

Endpoint local_endpoint(int socket) { return to_endpoint(local_address(socket)); }

std::string peer_address(int socket) {
  Address address;
  if (getpeername(socket, address.get(), &address.length) != 0) return "an unknown peer";
  if (address.storage.ss_family == AF_UNIX) return "a local socket";
  return to_string(to_endpoint(address));
}

void read_exact(int socket, std::span<std::byte> data, std::string_view peer, Deadline deadline) {
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t count = ::recv(socket, data.data() + done, data.size() - done, MSG_DONTWAIT);
    if (count > 0) {
      done += size_t(count);
    } else if (count == 0) {
      throw ConnectionClosed(ErrorKind::kPeer,
                             fmt::format("read from {}: it closed the connection", peer));
    } else if (must_wait(errno)) {
      if (!wait_ready(socket, POLLIN, deadline))
        fail(ErrorKind::kPeer, "read from {}: {} of {} bytes came within {:g} s", peer, done,
             data.size(), deadline.seconds());
    } else if (errno != EINTR) {
      fail_ended("read from", peer);
    }
  }
}

void write_all(int socket, std::span<const std::byte> data, std::string_view peer,
               Deadline deadline) {
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t count =
        ::send(socket, data.data() + done, data.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) {
      done += size_t(count);
    } else if (must_wait(errno)) {
      if (!wait_ready(socket, POLLOUT, deadline))
        fail(ErrorKind::kPeer, "write to {}: {} of {} bytes were sent within {:g} s", peer, done,
             data.size(), deadline.seconds());
    } else if (errno != EINTR) {
      fail_ended("write to", peer);
    }
  }
}

bool wait_ready(int socket, short events, Deadline deadline) {
  for (;;) {
    pollfd entry{socket, events, 0};
    const int count = ::poll(&entry, 1, deadline.remaining_ms());
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) check_sys(count, "wait for a socket");
    if (deadline.expired()) return false;
  }
}

// TCP_USER_TIMEOUT is left alone: it would also end the connection to a process that is paused for
// longer while its receive window is full, in real time even where both ends are paused.
void detect_silence(int socket, Deadline::Duration limit) {
  constexpr int kMostSeconds = 32767;  // of the first two options
  const auto seconds = [limit](int share) {
    const auto count = std::chrono::ceil<std::chrono::seconds>(limit / share).count();
    return int(std::clamp<int64_t>(count, 1, kMostSeconds));
  };
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds(2));
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds(4));
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
  // The pause between two of 15 attempts doubles, up to this; 1 s would be 13 s in all. Where the
  // option is not known, up to 120 s.
  constexpr int kTcpRtoMaxMs = 44;  // TCP_RTO_MAX_MS of linux/tcp.h since Linux 6.15
  const int longest_pause_ms = std::min(seconds(6), 120) * 1000;
  (void)setsockopt(socket, IPPROTO_TCP, kTcpRtoMaxMs, &longest_pause_ms, sizeof longest_pause_ms);
}

std::string question_about(int socket) {
  constexpr unsigned kLost = 3;  // a packet sent again, or probes, that nothing answers
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      unsigned{info.tcpi_retransmits} + info.tcpi_probes < kLost)
    return "";
  return fmt::format("; is its host up, and do packets of {} B (the MTU) reach it?",
                     info.tcpi_pmtu);
}

}  // namespace gxp

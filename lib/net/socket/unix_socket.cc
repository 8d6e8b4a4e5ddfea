#include "lib/net/socket/unix_socket.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include "lib/base/error.h"
#include "lib/net/socket/socket.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

struct UnixAddress {
  sockaddr_un storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// An abstract name starts with a zero byte.
UnixAddress abstract_address(std::string_view name) {
  UnixAddress address;
  if (name.empty() || name.size() >= sizeof address.storage.sun_path)
    fail(ErrorKind::kInternal, "name a local socket '{}': it must have 1 to {} bytes", name,
         sizeof address.storage.sun_path - 1);
  address.storage.sun_family = AF_UNIX;
  std::memcpy(address.storage.sun_path + 1, name.data(), name.size());
  address.length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Fd make_unix_socket() {
  const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  return Fd(int(check_sys(::socket(AF_UNIX, type, 0), "make a local socket")));
}

rlim_t file_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Data with room for one descriptor next to it.
struct FdMessage {
  iovec data;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  explicit FdMessage(std::span<const std::byte> bytes)
      : data{const_cast<std::byte*>(bytes.data()), bytes.size()} {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  FdMessage(const FdMessage&) = delete;
  FdMessage& operator=(const FdMessage&) = delete;
};

// Calls `transfer` until it moves the byte; names `act` and `peer` in errors.
template <class Transfer>
void transfer_when_ready(int socket, short events, std::string_view act, Deadline deadline,
                         Transfer transfer) {
  for (;;) {
    const ssize_t count = transfer();
    if (count > 0) return;
    if (count == 0) fail(ErrorKind::kPeer, "{}: it closed the connection", act);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      fail(ErrorKind::kPeer, "{}: {}", act, system_text(errno));
    if (!wait_ready(socket, events, deadline))
      fail(ErrorKind::kPeer, "{}: not done after {:g} s", act, deadline.seconds());
  }
}

}  // namespace

Fd listen_unix(std::string_view name, int backlog) {
  const UnixAddress address = abstract_address(name);
  Fd socket = make_unix_socket();
  const std::string act = fmt::format("listen on the local socket @{}", name);
  check_sys(::bind(socket.get(), address.get(), address.length), act);
  check_sys(::listen(socket.get(), backlog), act);
  return socket;
}

Fd connect_unix(std::string_view name, std::string_view peer, Deadline deadline) {
  const UnixAddress address = abstract_address(name);
  for (Deadline::Duration pause = 1ms;; pause = std::min<Deadline::Duration>(2 * pause, 50ms)) {
    Fd socket = make_unix_socket();
    if (::connect(socket.get(), address.get(), address.length) == 0) return socket;
    const int error = errno;  // EAGAIN: the listener's backlog is full
    if (deadline.expired() || (error != ECONNREFUSED && error != EAGAIN && error != EINTR))
      fail(ErrorKind::kPeer, "connect to {} at the local socket @{}: {} after {:g} s", peer, name,
           system_text(error), deadline.seconds());
    std::this_thread::sleep_for(std::min(pause, deadline.remaining()));
  }
}

pid_t peer_process(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  const bool known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  return known ? credentials.pid : 0;
}

std::pair<Fd, Fd> make_message_sockets() {
  std::array<int, 2> ends{};
  const int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
  check_sys(::socketpair(AF_UNIX, type, 0, ends.data()), "make a pair of local sockets");
  return {Fd(ends[0]), Fd(ends[1])};
}

void send_message(int socket, std::span<const std::byte> data, int fd, std::string_view peer,
                  Deadline deadline) {
  FdMessage message(data);
  if (fd < 0) {
    message.header.msg_controllen = 0;
  } else {
    cmsghdr* control = CMSG_FIRSTHDR(&message.header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
  }
  transfer_when_ready(socket, POLLOUT, fmt::format("send a descriptor to {}", peer), deadline, [&] {
    return ::sendmsg(socket, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL);
  });
}

Fd receive_message(int socket, std::span<std::byte> data, std::string_view peer,
                   Deadline deadline) {
  FdMessage message(data);
  const std::string act = fmt::format("receive a descriptor from {}", peer);
  ssize_t count = 0;
  transfer_when_ready(socket, POLLIN, act, deadline, [&] {
    return count = ::recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  });
  if ((message.header.msg_flags & MSG_CTRUNC) != 0) {
    fail(ErrorKind::kIo,
         "{}: this process has {} files open, which is its limit (`ulimit -n`); raise it", act,
         file_limit());
  }
  Fd found;
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS &&
      control->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(control), sizeof fd);
    found = Fd(fd);
  }
  if (size_t(count) != data.size() || (message.header.msg_flags & MSG_TRUNC) != 0)
    fail(ErrorKind::kPeer, "{}: the message has {} bytes, not {}", act, count, data.size());
  return found;
}

void send_fd(int socket, int fd, std::string_view peer, Deadline deadline) {
  constexpr std::byte kByte{'f'};
  send_message(socket, std::span(&kByte, 1), fd, peer, deadline);
}

Fd receive_fd(int socket, std::string_view peer, Deadline deadline) {
  std::byte byte{};
  Fd fd = receive_message(socket, std::span(&byte, 1), peer, deadline);
  if (!fd.valid())
    fail(ErrorKind::kPeer, "receive a descriptor from {}: the message carries none", peer);
  return fd;
}

}  // namespace gxp

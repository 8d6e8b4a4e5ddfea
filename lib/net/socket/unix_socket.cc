#include "lib/net/socket/unix_socket.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

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

// One byte of data with room for one descriptor next to it.
struct FdMessage {
  char byte = 'f';
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  FdMessage() {
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
      fail(ErrorKind::kPeer, "{}: not within {:g} s", act, deadline.seconds());
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

void send_fd(int socket, int fd, std::string_view peer, Deadline deadline) {
  FdMessage message;
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
  transfer_when_ready(socket, POLLOUT, fmt::format("send a descriptor to {}", peer), deadline, [&] {
    return ::sendmsg(socket, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL);
  });
}

Fd receive_fd(int socket, std::string_view peer, Deadline deadline) {
  FdMessage message;
  const std::string act = fmt::format("receive a descriptor from {}", peer);
  transfer_when_ready(socket, POLLIN, act, deadline, [&] {
    return ::recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  });
  if ((message.header.msg_flags & MSG_CTRUNC) != 0) {
    fail(ErrorKind::kIo,
         "{}: this process may have no more files open, which are {} (`ulimit -n`); raise that "
         "limit",
         act, file_limit());
  }
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control == nullptr || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS ||
      control->cmsg_len != CMSG_LEN(sizeof(int)))
    fail(ErrorKind::kPeer, "{}: the message has none", act);
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(control), sizeof fd);
  return Fd(fd);
}

}  // namespace gxp

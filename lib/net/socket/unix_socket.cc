#include "lib/net/socket/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
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

// By way of the open directory, as sun_path is short.
UnixAddress file_address(const Fd& directory, const std::string& name) {
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory.get(), name);
  UnixAddress address;
  GXP_ASSERT(path.size() < sizeof address.storage.sun_path);
  address.storage.sun_family = AF_UNIX;
  std::memcpy(address.storage.sun_path, path.c_str(), path.size() + 1);
  address.length = sizeof address.storage;
  return address;
}

Fd open_directory(const std::string& path, const std::string& act) {
  return Fd(int(check_sys(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), act)));
}

ucred credentials_of(int socket) {
  ucred credentials{.pid = 0, .uid = uid_t(-1), .gid = gid_t(-1)};
  socklen_t size = sizeof credentials;
  ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return credentials;
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

// The socket gets its mode before it listens and its name after that, so no other user can ever
// connect, and whoever finds the file finds a listener.
Fd listen_unix_file(const std::string& directory, const std::string& name) {
  const std::string act = fmt::format("listen on the local socket {}/{}", directory, name);
  const Fd at = open_directory(directory, act);
  const std::string fresh = fmt::format("{}.{}", name, ::getpid());
  ::unlinkat(at.get(), fresh.c_str(), 0);
  Fd socket = make_unix_socket();
  const UnixAddress address = file_address(at, fresh);
  check_sys(::bind(socket.get(), address.get(), address.length), act);
  const bool done = ::fchmodat(at.get(), fresh.c_str(), 0600, 0) == 0 &&
                    ::listen(socket.get(), 16) == 0 &&
                    ::renameat(at.get(), fresh.c_str(), at.get(), name.c_str()) == 0;
  const int error = errno;
  if (!done) ::unlinkat(at.get(), fresh.c_str(), 0);
  if (!done) fail(ErrorKind::kIo, "{}: {}", act, system_text(error));
  return socket;
}

Fd connect_unix_file(const std::string& directory, const std::string& name) {
  const std::string act = fmt::format("connect to the local socket {}/{}", directory, name);
  const Fd at = open_directory(directory, act);
  const UnixAddress address = file_address(at, name);
  Fd socket = make_unix_socket();
  if (::connect(socket.get(), address.get(), address.length) == 0) return socket;
  if (errno == ENOENT || errno == ECONNREFUSED) return {};
  fail(ErrorKind::kIo, "{}: {}", act, system_text(errno));
}

pid_t peer_process(int socket) { return credentials_of(socket).pid; }
bool is_own_peer(int socket) { return credentials_of(socket).uid == ::geteuid(); }

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

// A port for ranks that are started one by one.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace gxp {

// A TCP port of loopback that nobody else gets while this lives, but that gxp may listen on.
class ReservedPort {
 public:
  explicit ReservedPort(bool listening = false)
      : socket_(int(check_sys(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"))) {
    const int on = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    check_sys(::bind(socket_.get(), generic, size), "bind");
    check_sys(::getsockname(socket_.get(), generic, &size), "getsockname");
    if (listening) check_sys(::listen(socket_.get(), 1), "listen");
    master_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
  }
  [[nodiscard]] const std::string& master() const { return master_; }

 private:
  Fd socket_;
  std::string master_;
};

}  // namespace gxp

// A server's end of a connection, waiting for the client. gxp's own servers do not wait.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <string>

#include "lib/net/socket/authenticate.h"
#include "lib/net/socket/socket.h"

namespace gxp {

// The next connection; invalid after 20 s.
inline Fd accept_connection(const Fd& listener) {
  wait_ready(listener.get(), POLLIN, Deadline::after(std::chrono::seconds(20)));
  return Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

inline Authenticated authenticate_server(int socket, const Secret& secret, std::string purpose,
                                         Deadline deadline) {
  Handshake handshake(Handshake::Role::kServer, secret, std::move(purpose), 0, "client");
  Handshake::Hello hello{};
  Handshake::Proof proof{};
  write_all(socket, std::as_bytes(std::span(handshake.hello())), "client", deadline);
  read_exact(socket, std::as_writable_bytes(std::span(hello)), "client", deadline);
  const Handshake::Proof answer = handshake.answer(hello);
  write_all(socket, std::as_bytes(std::span(answer)), "client", deadline);
  read_exact(socket, std::as_writable_bytes(std::span(proof)), "client", deadline);
  const int rank = handshake.verify(proof);
  return {rank, handshake.keys()};
}

}  // namespace gxp

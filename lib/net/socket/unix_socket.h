// Unix stream sockets with abstract names (no file, gone with the last descriptor) and the passing
// of descriptors between processes of one host. The contract is that of
// lib/net/socket/socket.h.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"

namespace gxp {

// `name` has up to 107 bytes and is visible to the whole network namespace, so it says nothing
// secret; who connects must authenticate. A name in use is kIo.
Fd listen_unix(std::string_view name, int backlog = 64);
// Tries again until the deadline while nobody listens.
Fd connect_unix(std::string_view name, std::string_view peer, Deadline deadline);

// The process at the other end; 0: not seen from here. `socket` was accepted from
// listen_unix()'s or returned by connect_unix().
pid_t peer_process(int socket);

// Sends a duplicate of `fd` over a Unix socket; the caller keeps its own.
void send_fd(int socket, int fd, std::string_view peer, Deadline deadline);
// Receives one that send_fd() sent; close-on-exec. kIo: this process may open no more.
Fd receive_fd(int socket, std::string_view peer, Deadline deadline);

}  // namespace gxp

// Unix stream sockets with abstract names (no file, gone with the last descriptor) and the passing
// of descriptors between processes of one host. Same contract as lib/net/socket/socket.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"

namespace gxp {

// `name` has up to 107 bytes and is visible to the whole network namespace, so it says nothing
// secret; who connects must authenticate. A name in use is kIo.
Fd listen_unix(std::string_view name, int backlog = 64);
// Retries until the deadline while no process listens.
Fd connect_unix(std::string_view name, std::string_view peer, Deadline deadline);

// The process at the other end; 0: not seen from here. `socket` was accepted from
// listen_unix()'s or returned by connect_unix().
pid_t peer_process(int socket);

// Sends a duplicate of `fd` over a Unix socket; the caller keeps its own.
void send_fd(int socket, int fd, std::string_view peer, Deadline deadline);
// Receives one that send_fd() sent; close-on-exec. kIo: this process may open no more.
Fd receive_fd(int socket, std::string_view peer, Deadline deadline);

// The two ends of a connection that keeps messages apart.
std::pair<Fd, Fd> make_message_sockets();
// Over such a connection: a message of all of `data`, at least a byte, and a duplicate of `fd` with
// it unless that is -1.
void send_message(int socket, std::span<const std::byte> data, int fd, std::string_view peer,
                  Deadline deadline);
// Receives one that fills `data`, with its descriptor if it has one. kPeer: it has another size.
Fd receive_message(int socket, std::span<std::byte> data, std::string_view peer, Deadline deadline);

}  // namespace gxp

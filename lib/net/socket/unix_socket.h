// Unix stream sockets, with abstract names (no file, gone with the last descriptor) or as files, and
// the passing of descriptors between processes of one host. Same contract as lib/net/socket/socket.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
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

// The socket as a file NAME in a directory, whose path may be of any length, open for this user only.
// Replaces a file of that name. The caller removes the file. kIo.
Fd listen_unix_file(const std::string& directory, const std::string& name);
// Does not wait. An invalid one: there is no such file, or no process listens (`errno` says which).
// kIo: the directory or the socket may not be used.
Fd connect_unix_file(const std::string& directory, const std::string& name);

// The process at the other end, which may have stopped to listen; 0: not seen from here. `socket` was
// accepted from a listening one or returned by a function that connects.
pid_t peer_process(int socket);
// Whether it runs as the same user as this one.
bool is_own_peer(int socket);

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

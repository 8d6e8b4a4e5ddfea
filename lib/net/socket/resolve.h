// Names of hosts to addresses, by a deadline.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "lib/base/deadline.h"

namespace gxp {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// The addresses of `host`, the best first, with `port`; "": those of loopback, or with `to_listen`
// the wildcards. None, and in `cause` why, if there are none or the name servers do not answer by
// the deadline. Threads: any. Cost: a number is read at once; a name is asked for by a thread,
// which ends when the name servers' time is up, however early we stop to wait.
std::vector<Address> resolve(const std::string& host, int port, bool to_listen, Deadline deadline,
                             std::string& cause);

}  // namespace gxp

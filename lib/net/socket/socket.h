// TCP and stream sockets with deadlines. For all functions:
//   Names    `peer` says who is at the other end, for messages: "rank 3 at 10.0.0.7:29500".
//   Errors   kPeer: the peer is gone, refuses or is late; kIo: the system refuses (port taken,
//            too many files). SIGPIPE is never raised.
//   Threads  any; two threads may read and write one socket at the same time, one each way.
//   Sockets  are close-on-exec; TCP ones send small messages at once (TCP_NODELAY). Blocking or
//            not makes no difference to these functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace gxp {

// Thrown by read_exact() and write_all(), with kind kPeer, if the peer has closed the connection.
class ConnectionClosed : public Error {
 public:
  using Error::Error;
};

struct Endpoint {
  std::string host;  // a name or an IPv4 or IPv6 address; "": all interfaces, or this host
  int port = 0;      // 0, to listen only: the system chooses one
  bool operator==(const Endpoint&) const = default;
};

// "10.0.0.7:29500", "[::1]:29500".
std::string to_string(const Endpoint& endpoint);
// "host:port", "[v6]:port"; throws kUsage for anything else.
Endpoint parse_endpoint(std::string_view text);

inline constexpr int kBacklog = 1024;

// A listening socket. A port in use is a kIo error that says how to choose another.
Fd listen_tcp(const Endpoint& endpoint, int backlog = kBacklog);

// Ports, both included; 0: any.
struct PortRange {
  int first = 0;
  int last = 0;
  bool operator==(const PortRange&) const = default;
};
// "30000-30100"; "": any. Throws kConfig for anything else, calling it `setting`.
PortRange parse_port_range(std::string_view text, std::string_view setting);
// A listening socket on one of the ports that is free. `start`: how many ports to skip at first, so
// that processes of one host try different ports. kIo: all are taken.
Fd listen_tcp_within(const PortRange& ports, const std::string& host, int start);
// Connects, and retries until the deadline while no process listens: ranks start in any order. An
// error message ends with the time spent; the caller adds the remedy. `prepare` is called with each
// socket before it connects, for options that must be set by then.
Fd connect_tcp(const Endpoint& endpoint, std::string_view peer, Deadline deadline,
               const std::function<void(int socket)>& prepare = {});

// The local address of a socket, with the port that the system chose.
Endpoint local_endpoint(int socket);
// The address at the other end; "a local socket" for a Unix socket, "an unknown peer" if not
// connected.
std::string peer_address(int socket);

// Fills all of `data`. A peer that closes first is kPeer.
void read_exact(int socket, std::span<std::byte> data, std::string_view peer, Deadline deadline);
// Sends all of `data`.
void write_all(int socket, std::span<const std::byte> data, std::string_view peer,
               Deadline deadline);

// Whether poll() says that `socket` is ready for `events` (or has failed) before the deadline.
bool wait_ready(int socket, short events, Deadline deadline);

// How long a host may be silent unless a caller says otherwise.
inline constexpr std::chrono::seconds kUsualSilence{60};

// Makes the OS close an idle connection after some 1.5 times `limit` of silence: a crashed host or
// a cut cable sends nothing, so TCP alone would wait for hours. A stopped process still answers.
// Unacknowledged data is sent again for longer, up to 15 minutes; no limit ends a connection whose
// receiver is stopped and reads nothing.
void detect_silence(int socket, Deadline::Duration limit = kUsualSilence);

// The remedy if packets are not answered although the connection was made: "; is its host
// up, and do packets of 9000 B (the MTU) reach it?"; "" if they are.
std::string question_about(int socket);

}  // namespace gxp

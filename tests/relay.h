// A man in the middle: passes on what two ends of TCP connections say, or does not.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/net/socket/socket.h"

namespace gxp {

enum class RelayDirection : uint8_t { kToServer, kToClient };

// May change, shorten or lengthen `bytes`, the next of a connection that go this way. `position`:
// how many came before them.
using Meddle = std::function<void(RelayDirection way, uint64_t position, std::string& bytes)>;

// What to do with the byte at `at` of one way of every connection.
enum class Deed : uint8_t { kAlter, kDrop, kRepeat };
inline Meddle meddle_at(RelayDirection way, uint64_t at, Deed deed = Deed::kAlter) {
  return [=](RelayDirection now, uint64_t position, std::string& bytes) {
    if (now != way || at < position || at >= position + bytes.size()) return;
    const size_t i = at - position;
    if (deed == Deed::kAlter) bytes[i] = char(bytes[i] ^ 0x10);
    if (deed == Deed::kDrop) bytes.erase(i, 1);
    if (deed == Deed::kRepeat) bytes.insert(i, 1, bytes[i]);
  };
}

class Relay {
 public:
  Relay(Endpoint server, Meddle meddle)
      : server_(std::move(server)),
        meddle_(std::move(meddle)),
        listener_(listen_tcp({"127.0.0.1", 0})),
        endpoint_(local_endpoint(listener_.get())),
        thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) pass_on();
        }) {}

  // Where clients find it.
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

 private:
  struct End {
    Fd socket;
    uint64_t position = 0;  // bytes that came from it
    bool ended = false;
  };
  struct Line {
    End client;
    End server;
  };

  void pass_on() {
    std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
    for (const Line& line : lines_) {
      for (const End* end : {&line.client, &line.server})
        entries.push_back({end->ended ? -1 : end->socket.get(), POLLIN, 0});
    }
    if (::poll(entries.data(), entries.size(), 5) <= 0) return;
    size_t i = 1;
    for (Line& line : lines_) {
      if (entries[i++].revents != 0) pass(line.client, line.server, RelayDirection::kToServer);
      if (entries[i++].revents != 0) pass(line.server, line.client, RelayDirection::kToClient);
    }
    lines_.remove_if([](const Line& line) { return line.client.ended && line.server.ended; });
    if (entries[0].revents == 0) return;
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) return;
    try {
      Fd server = connect_tcp(server_, "the server", Deadline::after(std::chrono::seconds(1)));
      lines_.push_back({{std::move(client)}, {std::move(server)}});
    } catch (const Error&) {
      // The client sees its connection close.
    }
  }

  void pass(End& from, End& to, RelayDirection way) {
    std::array<char, 65536> chunk;
    const ssize_t count = ::recv(from.socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (count > 0) {
      std::string bytes(chunk.data(), size_t(count));
      meddle_(way, from.position, bytes);
      from.position += uint64_t(count);
      try {
        write_all(to.socket.get(), std::as_bytes(std::span(bytes)), "an end",
                  Deadline::after(std::chrono::seconds(1)));
        return;
      } catch (const Error&) {
        from.ended = true;
      }
    }
    from.ended = true;
    ::shutdown(to.socket.get(), SHUT_WR);
  }

  Endpoint server_;
  Meddle meddle_;
  Fd listener_;
  Endpoint endpoint_;
  std::list<Line> lines_;
  std::jthread thread_;
};

}  // namespace gxp

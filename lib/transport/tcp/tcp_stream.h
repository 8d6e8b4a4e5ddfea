// Bytes to and from one peer over one or several TCP connections.
//
// With several, the stream of bytes is cut into stripes, dealt to the connections in turn, so the
// order of the bytes is kept and a message longer than a stripe uses more than one of them.
// A read takes more bytes than requested if they are available, so a small message costs one system
// call, and so does each piece that is combined; those go through memory that stays in the cache.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/transport/stream/byte_stream.h"

namespace gxp {

// What the streams of one rank have in common.
struct TcpCommon {
  static constexpr size_t kPieceBytes = 256 << 10;

  // Bytes on their way to a combiner; empty between two calls.
  std::unique_ptr<std::byte[]> piece =
      std::make_unique<std::byte[]>(kPieceBytes + kMaxElementBytes);
  // Sockets are tried only after an event; without it, always.
  bool by_events = false;
  Deadline::Duration silence = std::chrono::seconds(60);  // TcpOptions::silence
};

class TcpStream : public ByteStream {
 public:
  // `common` outlives the stream. `stripe_bytes` says nothing if there is one socket.
  TcpStream(std::vector<Fd> sockets, size_t stripe_bytes, TcpCommon& common);

  size_t write_some(ConstMemory head, ConstMemory body) override;
  size_t read_some(Memory target) override;
  size_t deliver_some(PendingMessage& receive) override;
  std::string_view closed() const override { return closed_; }
  void shut_down() noexcept override;

  // The sockets that carry the next byte.
  [[nodiscard]] int next_to_read() const { return connection(read_).socket.get(); }
  [[nodiscard]] int next_to_write() const { return connection(written_).socket.get(); }
  [[nodiscard]] size_t connections() const { return connections_.size(); }
  [[nodiscard]] int socket(size_t index) const { return connections_[index].socket.get(); }
  // An event of a socket.
  void set_ready(size_t index, bool readable, bool writable);
  // Closes the stream if the peer's host has not answered for TcpCommon::silence. A system call for
  // each socket.
  void look_for_silence();

 private:
  static constexpr size_t kAheadBytes = 8192;

  struct Connection {
    Fd socket;
    bool readable = true;  // false: no more bytes; an event will signal the next
    bool writable = true;
    std::optional<Deadline> lost_at = std::nullopt;  // unless the silent peer answers before
  };
  [[nodiscard]] const Connection& connection(uint64_t position) const {
    return connections_[position / stripe_bytes_ % connections_.size()];
  }
  Connection& connection(uint64_t position) {
    return connections_[position / stripe_bytes_ % connections_.size()];
  }
  [[nodiscard]] size_t stripe_room(uint64_t position) const {
    return connections_.size() == 1 ? SIZE_MAX : stripe_bytes_ - position % stripe_bytes_;
  }
  size_t receive(Memory first, Memory second);
  size_t read_ahead();
  void keep_error();
  void lose(std::string_view cause);

  std::vector<Connection> connections_;
  size_t stripe_bytes_;
  TcpCommon& common_;
  uint64_t read_ = 0;  // bytes so far
  uint64_t written_ = 0;
  std::string closed_;
  std::string question_;  // question_about() when it last had one
  // Bytes received after the requested ones: the next header, often with its message.
  alignas(64) std::array<std::byte, kAheadBytes> ahead_;
  size_t ahead_begin_ = 0;
  size_t ahead_end_ = 0;
};

// What TCP knows about a connection on which nothing moves.
struct TcpSilence {
  unsigned unanswered = 0;             // packets sent again, and probes, since the last answer
  unsigned ms_since_acknowledged = 0;  // the peer's last acknowledgement
};

// Whether the other host seems to be gone. A rank that computes and reads nothing, even one that is
// stopped, answers: its OS does.
constexpr bool is_silent(const TcpSilence& silence) {
  return silence.unanswered >= 4 && silence.ms_since_acknowledged >= 3000;
}

}  // namespace gxp

#include "lib/transport/tcp/tcp_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/net/socket/socket.h"

namespace gxp {

TcpStream::TcpStream(std::vector<Fd> sockets, size_t stripe_bytes, TcpCommon& common)
    : stripe_bytes_(stripe_bytes), common_(common) {
  for (Fd& socket : sockets) connections_.push_back({std::move(socket)});
}

// Notes why the last call failed, unless it would merely have waited.
void TcpStream::keep_error() {
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
  const bool ended = errno == ECONNRESET || errno == EPIPE;
  if (!ended) return lose(system_text(errno));
  closed_ = "closed its connection";
}

void TcpStream::lose(std::string_view cause) {
  closed_ = fmt::format("is out of reach: {}{}", cause, question_);
}

size_t TcpStream::write_some(ConstMemory head, ConstMemory body) {
  size_t taken = 0;
  while (taken < head.bytes + body.bytes) {
    Connection& out = connection(written_);
    if (common_.by_events && !out.writable) break;
    const size_t room = stripe_room(written_);
    const size_t head_at = std::min(taken, head.bytes);
    const size_t body_at = taken - head_at;
    const size_t head_left = std::min(head.bytes - head_at, room);
    const size_t body_left = std::min(body.bytes - body_at, room - head_left);
    std::array<iovec, 2> pieces{iovec{const_cast<std::byte*>(head.data) + head_at, head_left},
                                iovec{const_cast<std::byte*>(body.data) + body_at, body_left}};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    const size_t offered = head_left + body_left;
    const ssize_t sent = ::sendmsg(out.socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) keep_error();
    out.writable = sent >= ssize_t(offered);
    if (sent <= 0) break;
    taken += size_t(sent);
    written_ += uint64_t(sent);
    if (!out.writable) break;
  }
  return taken;
}

// Fills `first`, then `second`, with what is there on the current connection.
size_t TcpStream::receive(Memory first, Memory second) {
  Connection& in = connection(read_);
  if (common_.by_events && !in.readable) return 0;
  const size_t room = stripe_room(read_);
  first.bytes = std::min(first.bytes, room);
  second.bytes = std::min(second.bytes, room - first.bytes);
  std::array<iovec, 2> pieces{iovec{first.data, first.bytes}, iovec{second.data, second.bytes}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = second.bytes > 0 ? 2 : 1;
  const ssize_t count = message.msg_iovlen == 1
                            ? ::recv(in.socket.get(), first.data, first.bytes, MSG_DONTWAIT)
                            : ::recvmsg(in.socket.get(), &message, MSG_DONTWAIT);
  if (count < 0) keep_error();
  if (count == 0) closed_ = "closed its connection";
  in.readable = count >= ssize_t(first.bytes + second.bytes);
  if (count <= 0) return 0;
  read_ += uint64_t(count);
  return size_t(count);
}

// Fills ahead_, which is empty, and returns how much is there.
size_t TcpStream::read_ahead() {
  ahead_begin_ = 0;
  ahead_end_ = receive({ahead_.data(), ahead_.size()}, {});
  return ahead_end_;
}

size_t TcpStream::read_some(Memory target) {
  size_t ahead = ahead_end_ - ahead_begin_;
  if (ahead == 0) {
    if (target.bytes >= ahead_.size()) {
      const size_t count = receive(target, {ahead_.data(), ahead_.size()});
      ahead_begin_ = 0;
      ahead_end_ = count - std::min(count, target.bytes);
      return count - ahead_end_;
    }
    ahead = read_ahead();
  }
  const size_t count = std::min(target.bytes, ahead);
  std::memcpy(target.data, ahead_.data() + ahead_begin_, count);
  ahead_begin_ += count;
  return count;
}

size_t TcpStream::deliver_some(PendingMessage& receive_op) {
  const size_t missing = receive_op.bytes - receive_op.moved;
  if (receive_op.combiner.apply == nullptr) {
    const size_t count = read_some({receive_op.target + receive_op.moved, missing});
    receive_op.moved += count;
    return count;
  }
  size_t ahead = ahead_end_ - ahead_begin_;
  if (ahead == 0 && missing >= ahead_.size()) {
    // Behind a split element the next one is aligned again.
    std::byte* piece = common_.piece.get() + receive_op.moved % kMaxElementBytes;
    const size_t wanted = std::min(missing, TcpCommon::kPieceBytes);
    const bool to_the_end = wanted == missing;
    const size_t count = receive({piece, wanted}, {ahead_.data(), to_the_end ? ahead_.size() : 0});
    ahead_begin_ = 0;
    ahead_end_ = count - std::min(count, wanted);
    deliver(receive_op, {piece, count - ahead_end_});
    return count - ahead_end_;
  }
  if (ahead == 0) ahead = read_ahead();
  const size_t count = std::min(missing, ahead);
  deliver(receive_op, {ahead_.data() + ahead_begin_, count});
  ahead_begin_ += count;
  return count;
}

void TcpStream::shut_down() noexcept {
  for (const Connection& connection : connections_) ::shutdown(connection.socket.get(), SHUT_RDWR);
}

void TcpStream::set_ready(size_t index, bool readable, bool writable) {
  connections_[index].readable |= readable;
  connections_[index].writable |= writable;
}

void TcpStream::look_for_silence() {
  for (Connection& connection : connections_) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(connection.socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    const TcpSilence silence{unsigned{info.tcpi_retransmits} + info.tcpi_probes,
                             info.tcpi_last_ack_recv};
    if (const std::string question = question_about(connection.socket.get()); !question.empty())
      question_ = question;  // which the OS forgets as it gives the connection up
    if (!is_silent(silence)) {
      connection.lost_at.reset();
      continue;
    }
    if (!connection.lost_at) connection.lost_at = Deadline::after(common_.silence);
    if (connection.lost_at->expired() && closed_.empty()) lose("its host does not answer");
  }
}

}  // namespace gxp

#include "lib/transport/tcp/sealed_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/net/socket/socket.h"

namespace gxp {

namespace {

// Copied to be behind its message's header: as much costs less than a record more.
constexpr size_t kCopiedBytes = 8 << 10;

std::span<const std::byte> span_of(ConstMemory memory) { return {memory.data, memory.bytes}; }

}  // namespace

SealedStream::SealedStream(std::unique_ptr<TcpStream> carrier, const SealKeys& keys,
                           Protection protection, std::string what)
    : carrier_(std::move(carrier)),
      protection_(protection),
      what_(std::move(what)),
      sealer_(keys.cipher, keys.sending, protection),
      opener_(keys.cipher, keys.receiving, protection) {}

size_t SealedStream::write_some(ConstMemory head, ConstMemory body) {
  size_t taken = 0;
  for (;;) {
    const size_t of_head = std::min(taken, head.bytes);
    const size_t of_body = taken - of_head;
    if (!leaving_.under_way && taken == head.bytes + body.bytes) return taken;
    if (!leaving_.under_way)
      seal_next(head.slice(of_head, head.bytes - of_head),
                body.slice(of_body, body.bytes - of_body));
    if (!push_record()) return taken;
    taken += leaving_.body.bytes;
  }
}

void SealedStream::seal_next(ConstMemory head, ConstMemory body) {
  const bool copies = head.bytes > 0;
  const size_t of_body = std::min(body.bytes, copies ? kCopiedBytes : kMaxRecordBytes);
  ConstMemory text = body.slice(0, of_body);
  if (copies || protection_ == Protection::kEncrypt)
    staged_.resize(std::max(staged_.size(), head.bytes + of_body));
  if (copies) {
    std::memcpy(staged_.data(), head.data, head.bytes);
    if (of_body > 0) std::memcpy(staged_.data() + head.bytes, body.data, of_body);
    text = memory_of(staged_).slice(0, head.bytes + of_body);
  }
  leaving_ = {sealer_.seal(span_of(text), staged_.data()), text, 0, true};
  if (protection_ == Protection::kEncrypt) leaving_.body.data = staged_.data();
}

// Whether all of the record has gone.
bool SealedStream::push_record() {
  const size_t of_header = std::min(leaving_.taken, kRecordHeaderBytes);
  const size_t of_body = leaving_.taken - of_header;
  const ConstMemory header{leaving_.header.data() + of_header, kRecordHeaderBytes - of_header};
  leaving_.taken +=
      carrier_->write_some(header, leaving_.body.slice(of_body, leaving_.body.bytes - of_body));
  leaving_.under_way = leaving_.taken < kRecordHeaderBytes + leaving_.body.bytes;
  return !leaving_.under_way;
}

// Whether there are checked bytes that have not been handed on; reads what there is of the next
// record if not.
bool SealedStream::has_opened() {
  if (handed_ < opened_) return true;
  if (header_read_ < kRecordHeaderBytes) {
    header_read_ += carrier_->read_some(
        {header_.data() + header_read_, kRecordHeaderBytes - header_read_, MemorySpace::kHost});
    if (header_read_ < kRecordHeaderBytes) return false;
    const auto bytes = opener_.open_header(header_);
    if (!bytes) throw Tampered(what_);
    body_bytes_ = *bytes;
    body_read_ = 0;
    arrived_.resize(std::max(arrived_.size(), body_bytes_));
  }
  while (body_read_ < body_bytes_) {
    const size_t count =
        carrier_->read_some(memory_of(arrived_).slice(body_read_, body_bytes_ - body_read_));
    if (count == 0) return false;
    body_read_ += count;
  }
  if (!opener_.open(std::span(arrived_).first(body_bytes_))) throw Tampered(what_);
  header_read_ = 0;
  handed_ = 0;
  opened_ = body_bytes_;
  return opened_ > 0;
}

// Up to `most` checked bytes, which it counts as handed on.
ConstMemory SealedStream::take_opened(size_t most) {
  const size_t count = std::min(most, opened_ - handed_);
  const ConstMemory taken = memory_of(arrived_).slice(handed_, count);
  handed_ += count;
  return taken;
}

size_t SealedStream::read_some(Memory target) {
  if (!has_opened()) return 0;
  const ConstMemory taken = take_opened(target.bytes);
  std::memcpy(target.data, taken.data, taken.bytes);
  return taken.bytes;
}

size_t SealedStream::deliver_some(PendingMessage& receive) {
  if (!has_opened()) return 0;
  const ConstMemory taken = take_opened(receive.bytes - receive.moved);
  deliver(receive, taken);
  return taken.bytes;
}

TcpPeer make_tcp_peer(std::vector<MeshConnection> connections, const TransportContext& context,
                      int peer, TcpCommon& common) {
  const SealKeys keys = connections.at(0).keys;
  const std::string what = fmt::format("what rank {} sent to rank {} over TCP ({})", peer,
                                       context.rank, peer_address(connections[0].socket.get()));
  std::vector<Fd> sockets;
  for (MeshConnection& connection : connections) sockets.push_back(std::move(connection.socket));
  auto carrier = std::make_unique<TcpStream>(std::move(sockets), context.tcp.stripe_bytes, common);
  TcpStream* under = carrier.get();
  if (context.tcp.protect == Protection::kNone) return {std::move(carrier), under};
  return {std::make_unique<SealedStream>(std::move(carrier), keys, context.tcp.protect, what),
          under};
}

}  // namespace gxp

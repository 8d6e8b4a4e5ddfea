#include "lib/net/store/store_connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/net/socket/socket.h"

namespace gxp {
namespace {

constexpr size_t kReceivedBytes = size_t{64} << 10;
constexpr size_t kHandshakeBytes = Handshake::kHelloBytes + Handshake::kProofBytes;

template <class Bytes>
std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

StoreConnection::StoreConnection(Fd socket, const Secret& secret, Deadline::Duration handshake_time)
    : socket_(std::move(socket)),
      address_(peer_address(socket_.get())),
      handshake_(Handshake::Role::kServer, secret, "store", 0, address_),
      join_by_(Deadline::after(handshake_time)) {
  outbox_ = view(handshake_.hello());
}

bool StoreConnection::receive() {
  // A stranger can make us keep the 116 bytes of its handshake.
  const size_t room = rank_ < 0 ? kHandshakeBytes : kReceivedBytes;
  if (rank_ < 0 && handshake_bytes_.size() >= room) return true;
  std::array<char, kReceivedBytes> chunk;
  const ssize_t count = ::recv(fd(), chunk.data(), room, MSG_DONTWAIT);
  if (count > 0 && !leaving) {
    const std::string_view bytes(chunk.data(), size_t(count));
    if (reader_) {
      reader_->add(bytes);
    } else {
      handshake_bytes_ += bytes;
    }
  }
  if (count >= 0) return count > 0;
  if (errno == EAGAIN || errno == EINTR) return true;
  why_ = system_text(errno);
  return false;
}

template <class Bytes>
bool StoreConnection::take(Bytes& bytes) {
  if (handshake_bytes_.size() < bytes.size()) return false;
  std::memcpy(bytes.data(), handshake_bytes_.data(), bytes.size());
  handshake_bytes_.erase(0, bytes.size());
  return true;
}

// True when the client has proved its rank.
bool StoreConnection::advance_handshake() {
  Handshake::Hello hello;
  if (!has_hello_ && take(hello)) {
    outbox_ += view(handshake_.answer(hello));
    has_hello_ = true;
  }
  Handshake::Proof proof;
  if (!has_hello_ || !take(proof)) return false;
  rank_ = handshake_.verify(proof);
  if (rank_ < 0) return false;
  const SealKeys keys = handshake_.keys();
  sealer_.emplace(keys.cipher, keys.sending, Protection::kEncrypt);
  reader_.emplace(keys.cipher, keys.receiving,
                  fmt::format("what rank {} at {} sent to rank 0", rank_, address_),
                  kMaxValueBytes);
  reader_->add(std::exchange(handshake_bytes_, ""));
  return true;
}

std::optional<Frame> StoreConnection::next_frame() {
  if (rank_ < 0 && !advance_handshake()) return std::nullopt;
  return reader_->next();
}

void StoreConnection::send(const Frame& frame) { append_sealed(outbox_, frame, *sealer_); }

bool StoreConnection::flush() {
  while (has_unsent()) {
    const ssize_t count =
        ::send(fd(), outbox_.data() + sent_, outbox_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    sent_ += size_t(count);
  }
  outbox_.clear();
  sent_ = 0;
  return true;
}

}  // namespace gxp

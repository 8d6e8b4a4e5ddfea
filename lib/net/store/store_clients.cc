#include "lib/net/store/store_clients.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/net/socket/socket.h"
#include "lib/net/socket/strangers.h"

namespace gxp {
namespace {

constexpr size_t kReceivedBytes = size_t{64} << 10;
constexpr size_t kHandshakeBytes = Handshake::kHelloBytes + Handshake::kProofBytes;

template <class Bytes>
std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using namespace std::chrono_literals;

constexpr auto kHandshakeTime = 5s;
constexpr auto kLongestWait = 1s;  // a look at what else there is to do, should a wake-up be lost

bool is_stranger(const StoreConnection& client) { return !client.member && !client.gone; }

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

StoreClients::StoreClients(Fd listener, const Secret& secret, Deadline::Duration silence)
    : listener_(std::move(listener)),
      port_(local_endpoint(listener_.get()).port),
      wake_(int(check_sys(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an event descriptor"))),
      secret_(secret),
      silence_(silence) {
  // Not to fail where accept() finds that a client went away after poll() had announced it.
  check_sys(::fcntl(listener_.get(), F_SETFL, O_NONBLOCK), "prepare the store's socket");
}

void StoreClients::wake() { ::eventfd_write(wake_.get(), 1); }

std::vector<StoreConnection*> StoreClients::wait(std::optional<Deadline> until) {
  const auto not_after = [&until](const Deadline& other) {
    if (!until || other.is_before(*until)) until = other;
  };
  std::vector<pollfd> ready = {{wake_.get(), POLLIN, 0},
                               {may_accept() ? listener_.get() : -1, POLLIN, 0}};
  if (!accept_again_.expired()) not_after(accept_again_);
  for (const StoreConnection& client : clients_) {
    ready.push_back({client.fd(), short(client.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
    if (!client.member) not_after(client.join_by());
  }
  not_after(Deadline::after(kLongestWait));
  const int count = ::poll(ready.data(), ready.size(), until->remaining_ms());
  if (count < 0 && errno != EINTR) check_sys(count, "wait for the store's clients");
  std::vector<StoreConnection*> arrived;
  if (count <= 0) return arrived;
  if (eventfd_t times = 0; ready[0].revents != 0) ::eventfd_read(wake_.get(), &times);
  knocks_ = ready[1].revents != 0;
  size_t i = 2;
  for (StoreConnection& client : clients_) {
    if ((ready[i++].revents & ~POLLOUT) != 0) arrived.push_back(&client);
  }
  return arrived;
}

void StoreClients::finish_round(const std::function<void(StoreConnection&)>& lose) {
  for (StoreConnection& client : clients_) {
    if (!client.member && client.join_by().expired()) client.gone = true;
  }
  if (std::exchange(knocks_, false) && listener_.valid()) accept_client();
  for (StoreConnection& client : clients_) {
    if (!client.gone && !client.flush()) lose(client);
    if (client.leaving && !client.has_unsent()) client.gone = true;
  }
  clients_.remove_if([](const StoreConnection& client) { return client.gone; });
}

// The launcher has the socket too, so closing it is not enough.
void StoreClients::stop_listening() {
  if (!listener_.valid()) return;
  ::shutdown(listener_.get(), SHUT_RDWR);
  listener_.reset();
  for (StoreConnection& client : clients_) {
    if (!client.member && !client.leaving) client.gone = true;
  }
}

void StoreClients::drop_all() {
  stop_listening();
  clients_.clear();
}

bool StoreClients::has_unsent() const {
  return std::ranges::any_of(clients_, [](const auto& client) { return client.has_unsent(); });
}

void StoreClients::accept_client() {
  const bool room = make_room_for_stranger(clients_, is_stranger, [](auto at) { at->gone = true; });
  if (!room) {
    accept_again_ = Deadline::after(kSilentTime);
    return;
  }
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) {
    if (errno != EMFILE && errno != ENFILE) return;
    // Strangers will go; poll() must not spin meanwhile.
    accept_again_ = Deadline::after(100ms);
    const int cause = errno;
    if (std::ranges::none_of(clients_, is_stranger))
      fail(ErrorKind::kIo,
           "accept a rank: {}; raise the limit of open files on this host (ulimit -n)",
           system_text(cause));
    return;
  }
  detect_silence(socket.get(), silence_);
  clients_.emplace_back(std::move(socket), secret_, kHandshakeTime);
}

}  // namespace gxp

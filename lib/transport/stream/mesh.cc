#include "lib/transport/stream/mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <span>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/net/socket/authenticate.h"
#include "lib/net/socket/socket.h"
#include "lib/net/socket/strangers.h"

namespace gxp {

namespace {

constexpr std::chrono::seconds kHandshakeTime{5};
// What a server sends once it has verified the client's proof. Without it, a client whose proof was
// altered on the way would take itself for let in, and the end of the connection for a peer's.
constexpr std::array<uint8_t, 1> kLetIn{'y'};
constexpr std::chrono::milliseconds kVerdictLook{100};  // between two looks for a verdict
constexpr std::chrono::seconds kPatience{1};            // the same, while a peer does not accept

// The server's half of a handshake that must not hold up others.
class Arrival {
 public:
  Arrival(Fd socket, const TransportContext& context, std::string_view purpose)
      : socket_(std::move(socket)),
        handshake_(Handshake::Role::kServer, *context.secret, std::string(purpose), context.rank,
                   peer_address(socket_.get())) {
    send(handshake_.hello());
  }
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] bool late() const { return deadline_.expired(); }
  [[nodiscard]] bool silent() const { return hello_read_ == 0; }
  [[nodiscard]] Deadline::Clock::time_point since() const { return since_; }
  // Lets the peer in, after advance() has returned a rank.
  [[nodiscard]] MeshConnection take() {
    SealKeys keys = handshake_.keys();
    send(kLetIn);
    return {std::move(socket_), std::move(keys)};
  }

  // Reads what is there. Returns the peer's rank once it has proved it, -1 before; throws kPeer.
  int advance() {
    if (hello_read_ < hello_.size()) {
      hello_read_ += receive(std::span(hello_).subspan(hello_read_));
      if (hello_read_ < hello_.size()) return -1;
      send(handshake_.answer(hello_));
    }
    proof_read_ += receive(std::span(proof_).subspan(proof_read_));
    return proof_read_ < proof_.size() ? -1 : handshake_.verify(proof_);
  }

 private:
  size_t receive(std::span<uint8_t> into) {
    const ssize_t count = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (count > 0) return size_t(count);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    fail(ErrorKind::kPeer, "authenticate {}: it closed the connection",
         peer_address(socket_.get()));
  }
  // A new socket has room for the handshake's 117 bytes; if not, the deadline ends it.
  void send(std::span<const uint8_t> bytes) {
    (void)::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  Fd socket_;
  Handshake handshake_;
  Deadline deadline_ = Deadline::after(kHandshakeTime);
  Deadline::Clock::time_point since_ = Deadline::Clock::now();
  Handshake::Hello hello_{};
  Handshake::Proof proof_{};
  size_t hello_read_ = 0;
  size_t proof_read_ = 0;
};

class Mesh {
 public:
  Mesh(const TransportContext& context, MeshParts parts)
      : context_(context), parts_(std::move(parts)), peers_(size_t(context.world_size)) {}
  std::vector<MeshConnection> connect() {
    const auto addresses = context_.store->gather(fmt::format("transport {}", parts_.name),
                                                  parts_.address, context_.deadline);
    for (int peer = 0; peer < context_.rank; ++peer) {
      if (joins(peer)) connect_to(peer, addresses[size_t(peer)]);
    }
    while (!missing().empty()) accept_some();
    return std::move(peers_);
  }

 private:
  void connect_to(int peer, const std::string& address);
  void await(int socket, const std::string& who);
  void await_admission(int socket, const std::string& who);
  Fd reach(const std::string& who, const std::string& address);
  void check_verdict();
  void accept_some();
  void accept_one();
  bool advance(Arrival& arrival, const pollfd& entry);
  void admit(Arrival& arrival, int peer);
  void check_in_time();
  [[nodiscard]] bool joins(int peer) const {
    return peer != context_.rank && (!parts_.joins || parts_.joins(peer));
  }
  // The ranks that are still to come.
  [[nodiscard]] std::vector<int> missing() const;

  const TransportContext& context_;
  MeshParts parts_;
  std::vector<MeshConnection> peers_;  // by rank
  std::list<Arrival> arrivals_;
  Deadline accept_again_ = Deadline::after({});
  std::string dropped_;  // why the last stranger was
};

std::vector<int> Mesh::missing() const {
  std::vector<int> ranks;
  for (int peer = context_.rank + 1; peer < context_.world_size; ++peer) {
    if (joins(peer) && !peers_[size_t(peer)].socket.valid()) ranks.push_back(peer);
  }
  return ranks;
}

void Mesh::connect_to(int peer, const std::string& address) {
  const std::string who = fmt::format("rank {}", peer);
  auto [socket, proved] =
      connect_and_authenticate([&] { return reach(who, address); },
                               [&](int connected) {
                                 Authenticated answer = authenticate_client(
                                     connected, *context_.secret, parts_.name, context_.rank,
                                     context_.deadline, [&](int waiting) { await(waiting, who); });
                                 await_admission(connected, who);
                                 return answer;
                               },
                               context_.deadline);
  if (proved.rank != peer) {
    fail(ErrorKind::kPeer, "connect to rank {} at {}: rank {} answers", peer, address, proved.rank);
  }
  peers_[size_t(peer)] = {std::move(socket), std::move(proved.keys)};
}

// A peer lets others in when it has reached all ranks below it. Meanwhile one may fail.
void Mesh::await(int socket, const std::string& who) {
  const auto look = [&] {
    return Deadline::after(
        std::min<Deadline::Duration>(kVerdictLook, context_.deadline.remaining()));
  };
  while (!wait_ready(socket, POLLIN, look())) {
    check_verdict();
    if (context_.deadline.expired())
      fail(ErrorKind::kPeer, "connect to {} by {}: it did not answer within {:g} s; is it stopped?",
           who, parts_.name, context_.deadline.seconds());
  }
}

void Mesh::await_admission(int socket, const std::string& who) {
  await(socket, who);
  std::array<uint8_t, 1> answer{};
  try {
    read_exact(socket, std::as_writable_bytes(std::span(answer)), who, context_.deadline);
  } catch (const ConnectionClosed&) {
    // No answer.
  }
  if (answer != kLetIn)
    throw ConnectionClosed(
        ErrorKind::kPeer,
        fmt::format("connect to {} by {}: it rejected this rank's proof of the job secret, "
                    "although its own was right; does someone tamper with the connection?",
                    who, parts_.name));
}

// The peer may have died since it told its address; then nobody but the store knows.
Fd Mesh::reach(const std::string& who, const std::string& address) {
  for (;;) {
    try {
      const auto patience = std::min<Deadline::Duration>(kPatience, context_.deadline.remaining());
      return parts_.connect(address, who, Deadline::after(patience));
    } catch (const Error& error) {
      check_verdict();
      if (context_.deadline.expired())
        fail(error.kind(), "{}; tried for {:g} s{}{}", error.what(), context_.deadline.seconds(),
             parts_.remedy.empty() ? "" : "; ", parts_.remedy);
    }
  }
}

// One look at the listener and at all handshakes.
void Mesh::accept_some() {
  check_in_time();
  const bool room = accept_again_.expired();
  std::vector<pollfd> entries{{room ? parts_.listener.get() : -1, POLLIN, 0}};
  for (const Arrival& arrival : arrivals_) entries.push_back({arrival.fd(), POLLIN, 0});
  const auto look = room ? kVerdictLook : kSilentTime;
  const int look_ms = std::min(int(look.count()), context_.deadline.remaining_ms());
  if (::poll(entries.data(), entries.size(), look_ms) < 0) return;
  auto entry = entries.begin() + 1;
  std::erase_if(arrivals_, [&](Arrival& arrival) { return advance(arrival, *entry++); });
  if (entries[0].revents != 0) accept_one();
}

void Mesh::accept_one() {
  const auto all = [](const Arrival&) { return true; };
  if (!make_room_for_stranger(arrivals_, all, [this](auto at) { arrivals_.erase(at); })) {
    accept_again_ = Deadline::after(kSilentTime);
    return;
  }
  Fd socket(::accept4(parts_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.valid()) {
    arrivals_.emplace_back(std::move(socket), context_, parts_.name);
    return;
  }
  const bool no_descriptor = errno == EMFILE || errno == ENFILE;
  if (!no_descriptor) return;  // the caller has gone again
  if (arrivals_.empty())
    fail(ErrorKind::kIo, "accept rank {} by {}: {}; raise the limit of open files: ulimit -n",
         joined(missing(), ", "), parts_.name, system_text(errno));
  accept_again_ = Deadline::after(kVerdictLook);  // one that is a stranger ends meanwhile
}

// Returns whether the handshake has ended, one way or the other.
bool Mesh::advance(Arrival& arrival, const pollfd& entry) {
  try {
    const int peer = entry.revents != 0 ? arrival.advance() : -1;
    if (peer >= 0) admit(arrival, peer);
    return peer >= 0 || arrival.late();
  } catch (const Error& error) {
    dropped_ = error.what();
    return true;
  }
}

void Mesh::admit(Arrival& arrival, int peer) {
  if (peer <= context_.rank || peer >= context_.world_size || !joins(peer) ||
      peers_[size_t(peer)].socket.valid()) {
    fail(ErrorKind::kPeer, "accept rank {}: it is not expected", peer);
  }
  peers_[size_t(peer)] = arrival.take();
}

void Mesh::check_verdict() {
  const auto verdict = context_.store->verdict();
  if (verdict) fail(ErrorKind::kPeer, "rank {}: {}", verdict->rank, verdict->reason);
}

// A rank that has failed to connect knows more: it tells the store at the same moment.
void Mesh::check_in_time() {
  check_verdict();
  if (!context_.deadline.expired()) return;
  if (context_.store->wait_verdict(Deadline::after(kPatience))) check_verdict();
  fail(ErrorKind::kPeer, "connect ranks by {}: rank {} did not connect within {:g} s{}{}",
       parts_.name, joined(missing(), ", "), context_.deadline.seconds(),
       dropped_.empty() ? "" : "; the last unknown client was dropped: ", dropped_);
}

}  // namespace

std::vector<Fd> connect_mesh(const TransportContext& context, MeshParts parts) {
  std::vector<Fd> sockets;
  for (MeshConnection& peer : connect_mesh_with_keys(context, std::move(parts)))
    sockets.push_back(std::move(peer.socket));
  return sockets;
}

std::vector<MeshConnection> connect_mesh_with_keys(const TransportContext& context,
                                                   MeshParts parts) {
  return Mesh(context, std::move(parts)).connect();
}

}  // namespace gxp

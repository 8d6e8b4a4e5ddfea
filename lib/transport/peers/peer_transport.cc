#include "lib/transport/peers/peer_transport.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/net/socket/seal.h"

namespace gxp {

namespace {

// How long the rendezvous store may take to know the first cause of a lost connection.
constexpr std::chrono::milliseconds kVerdictTime{300};

std::vector<LinkGroup*> pointers_to(const std::vector<std::unique_ptr<LinkGroup>>& groups) {
  std::vector<LinkGroup*> pointers;
  for (const auto& group : groups) pointers.push_back(group.get());
  return pointers;
}

}  // namespace

// Carries the store's verdict to a transport that may be gone by then.
struct PeerTransport::AbortRelay {
  std::mutex mutex;  // guards transport
  PeerTransport* transport = nullptr;
};

PeerTransport::PeerTransport(PeerTransportParts parts)
    : parts_(std::move(parts)), traffic_(parts_.world_size), waiter_(pointers_to(parts_.groups)) {
  add_peers();
  for (const auto& group : parts_.groups) {
    if (arena_ == nullptr) arena_ = group->shared_arena();
  }
  if (arena_ != nullptr) arena_->attach(*this);
  if (parts_.store != nullptr) listen_to_store();
}

PeerTransport::~PeerTransport() {
  if (relay_) {
    const std::lock_guard lock(relay_->mutex);
    relay_->transport = nullptr;
  }
  parts_.groups.clear();  // while the operations that they may still complete are there
}

void PeerTransport::add_peers() {
  for (int rank = 0; rank < parts_.world_size; ++rank) {
    peers_.push_back({.messages = PeerMessages(rank, traffic_)});
    for (const auto& group : parts_.groups) {
      if (PeerLink* link = group->link(rank)) peers_.back().link = link;
    }
  }
  for (Peer& peer : peers_) {
    if (peer.link != nullptr) peer.link->attach(peer.messages);
  }
}

void PeerTransport::listen_to_store() {
  relay_ = std::make_shared<AbortRelay>();
  relay_->transport = this;
  parts_.store->on_abort([relay = relay_](const FailureVerdict& verdict) {
    const std::lock_guard lock(relay->mutex);
    if (relay->transport == nullptr) return;
    relay->transport->abort(fmt::format("rank {}: {}", verdict.rank, verdict.reason));
  });
}

PeerTransport::Peer& PeerTransport::peer_for(int rank, MemorySpace space) {
  Peer& peer = peers_.at(size_t(rank));
  GXP_ASSERT(peer.link != nullptr);
  GXP_ASSERT(peer.link->supports_memory(space));
  return peer;
}

bool PeerTransport::supports_memory(MemorySpace space) const {
  return std::ranges::all_of(peers_, [&](const Peer& peer) {
    return peer.link == nullptr || peer.link->supports_memory(space);
  });
}

Ticket PeerTransport::send(int rank, Tag tag, ConstMemory data) try {
  Peer& peer = peer_for(rank, data.space);
  const Ticket ticket = operations_.add(make_send(rank, tag, data));
  PendingMessage& operation = operations_[ticket];
  if (operation.done) return ticket;
  open(peer);
  peer.messages.add_send();
  peer.link->post_send(operation);
  return ticket;
} catch (...) {
  stop();
  throw;
}

Ticket PeerTransport::recv(int rank, Tag tag, Memory data) {
  return start_receive(make_receive(rank, tag, data));
}

Ticket PeerTransport::recv_and_combine(int rank, Tag tag, Memory target, const Combiner& combiner) {
  GXP_ASSERT(target.space == MemorySpace::kHost);
  return start_receive(make_combine(rank, tag, target, combiner));
}

Ticket PeerTransport::start_receive(PendingMessage receive) try {
  Peer& peer = peer_for(receive.peer, receive.space);
  if (receive.space != MemorySpace::kHost) receive.device = parts_.gpu;
  const Ticket ticket = operations_.add(receive);
  PendingMessage& operation = operations_[ticket];
  if (operation.done) return ticket;
  open(peer);
  if (peer.messages.add_receive(operation)) peer.link->post_receive(operation);
  return ticket;
} catch (...) {
  stop();
  throw;
}

void PeerTransport::wait(Ticket ticket, Deadline deadline) try {
  PendingMessage& operation = operations_[ticket];
  Backoff backoff = waiter_.backoff();
  while (!operation.done) {
    aborted_.check();
    if (progress()) {
      backoff.reset();
    } else if (backoff.keep_awake()) {
      continue;
    } else {
      sleep(deadline);
    }
    if (!operation.done && deadline.expired()) fail_late(operation, deadline);
  }
  if (!operation.sends) check_size(operation);
  operations_.remove(ticket);
} catch (...) {
  stop();
  throw;
}

void PeerTransport::wait_until(const std::function<bool()>& ready, std::span<const int> peers,
                               Deadline deadline) try {
  Backoff backoff = waiter_.backoff();
  while (!ready()) {
    aborted_.check();
    if (backoff.keep_awake()) continue;
    for (const int peer : peers) {
      const PeerLink* link = peers_[size_t(peer)].link;
      if (link != nullptr && !link->closed().empty() && !ready()) fail_lost(peers_[size_t(peer)]);
    }
    interests_.clear();
    for (const int peer : peers) {
      if (peer != rank()) interests_.push_back({peer, true, false});
    }
    waiter_.sleep(interests_, deadline, [&] { return aborted_.is_set() || ready(); });
    if (deadline.expired() && !ready()) {
      fail(ErrorKind::kPeer, "wait for rank {}: it did not arrive within {:.3g} s",
           joined(peers, ", "), deadline.seconds());
    }
  }
} catch (...) {
  stop();
  throw;
}

void PeerTransport::open(Peer& peer) {
  if (!peer.is_open) open_.push_back(&peer);
  peer.is_open = true;
}

bool PeerTransport::progress() {
  bool moved = false;
  waiter_.before_look(open_.size());
  for (size_t i = 0; i < open_.size(); ++i) {
    Peer& peer = *open_[i];
    try {
      if (peer.link->progress())
        moved = true;
      else if (peer.messages.has_operations() && !peer.link->closed().empty())
        fail_lost(peer);
    } catch (const Tampered& tampered) {
      // This rank's to report: the others see nothing of what does not carry its seal.
      if (parts_.store != nullptr) parts_.store->abort(rank(), tampered.what());
      throw;
    }
    if (peer.messages.has_operations()) continue;
    peer.is_open = false;
    open_[i--] = open_.back();
    open_.pop_back();
  }
  return moved;
}

void PeerTransport::sleep(Deadline deadline) {
  interests_.clear();
  for (const Peer& peer : peers_) {
    if (peer.messages.has_operations()) interests_.push_back(peer.messages.interest());
  }
  waiter_.sleep(interests_, deadline, [&] { return aborted_.is_set() || progress(); });
}

void PeerTransport::stop() noexcept {
  for (const auto& group : parts_.groups) group->stop();
}

void PeerTransport::abort(std::string_view reason) noexcept {
  aborted_.set(reason);
  for (const Peer& peer : peers_) {
    if (peer.link != nullptr) peer.link->shut_down(reason);
  }
  waiter_.wake();
}

// A peer that reacts to the first failure closes its connections too, so the store, which knows the
// first cause, is asked before the peer is blamed.
void PeerTransport::fail_lost(const Peer& peer) {
  aborted_.check();
  if (parts_.store != nullptr) {
    const auto verdict = parts_.store->wait_verdict(Deadline::after(kVerdictTime));
    aborted_.check();
    if (verdict) fail(ErrorKind::kPeer, "rank {}: {}", verdict->rank, verdict->reason);
  }
  const std::string reason = fmt::format("rank {} {}", peer.messages.peer(), peer.link->closed());
  if (parts_.store != nullptr && peer.link->failed()) parts_.store->abort(rank(), reason);
  throw Error(ErrorKind::kPeer, reason);
}

}  // namespace gxp

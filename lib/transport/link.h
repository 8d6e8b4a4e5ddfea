// The links that one transport makes: one to each peer that it joins, and what they share.
// PeerTransport owns all else: tags, matching, parking, deadlines, abort, counters.
//   Threads  one at a time, except where said.
//   Errors   kPeer: the peer is lost, or sends what cannot be.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/device/memory.h"
#include "lib/transport/peer_messages.h"

namespace gxp {

class SharedArena;

// Moves messages to and from one peer. A link posts whole messages, so it may hand the user's
// memory to the hardware; links over a stream of bytes share StreamLink (stream/stream_link.h).
class PeerLink {
 public:
  virtual ~PeerLink() = default;
  // Before anything is posted. `messages` outlives the link's last call.
  void attach(PeerMessages& messages) { messages_ = &messages; }

  // Whether messages may use this kind of memory.
  [[nodiscard]] virtual bool supports_memory(MemorySpace space) const = 0;
  // Starts to send without waiting. The link calls messages().finish(send) once the span is free.
  virtual void post_send(PendingMessage& send) = 0;
  // A receive whose message has not come. Only links whose peer writes directly into the receive's
  // memory need to know; others learn from messages().begin() where a message goes.
  virtual void post_receive(PendingMessage& /*receive*/) {}
  // Moves what can be moved now: sends, and messages of the peer as long as messages().awaits().
  // Returns whether anything moved.
  virtual bool progress() = 0;
  // "closed its connection": the reason why no more data will be transferred, once a later
  // progress() has transferred nothing; "" while the peer is connected.
  [[nodiscard]] virtual std::string_view closed() const = 0;
  // Whether the network has failed, which only this rank may have noticed, rather than the peer
  // ended.
  [[nodiscard]] virtual bool failed() const { return false; }
  // Lets the peer see the end. Any thread, also during the other calls.
  virtual void shut_down(std::string_view reason) noexcept = 0;
  // Wakes the peer if it sleeps, for what this rank wrote into memory that both have mapped.
  virtual void wake_peer() {}

 protected:
  [[nodiscard]] PeerMessages& messages() const { return *messages_; }

 private:
  PeerMessages* messages_ = nullptr;
};

// How long a rank waits for such links before it sleeps (backoff.h).
struct WaitPolicy {
  // Do not pause: that would keep a peer from its CPU, or looking costs more than a pause.
  bool oversubscribed = false;
  std::chrono::microseconds yield_time{0};
};

// The links of one row, and how to sleep until a peer moves (link_waiter.h):
//   on the bell   if the job has no other links and has_bell(): arm(kBell), sleep_on_bell(),
//                 disarm()
//   on handles    arm(kHandles), one poll() over those of all groups, after_poll(), disarm()
// What a peer does after arm() ends the sleep.
class LinkGroup {
 public:
  enum class Wake : uint8_t { kBell, kHandles };

  // By rank; null for this rank and for those that other rows join.
  explicit LinkGroup(std::vector<std::unique_ptr<PeerLink>> links) : links_(std::move(links)) {}
  virtual ~LinkGroup() = default;
  [[nodiscard]] PeerLink* link(int peer) const { return links_[size_t(peer)].get(); }

  [[nodiscard]] virtual WaitPolicy wait_policy() const = 0;
  // Memory that this rank shares with the ranks of its host, if the row makes any.
  [[nodiscard]] virtual SharedArena* shared_arena() { return nullptr; }
  // As Transport::keep() and forget().
  virtual void keep(ConstMemory /*memory*/) {}
  virtual void forget(ConstMemory /*memory*/) noexcept {}
  // An operation has failed, so all are given up: from now on none of their memory is read or
  // written. Only shut_down() of the links and the destructor follow.
  virtual void stop() noexcept {}
  // Called before each check of the `open` links, of all groups, that have operations.
  virtual void before_look(size_t /*open*/) {}

  virtual void arm(Wake /*how*/) {}
  virtual void disarm() {}
  [[nodiscard]] virtual bool has_bell() const { return false; }
  // Returns when a peer of interest may have moved or closed, or at the deadline, or earlier.
  virtual void sleep_on_bell(std::span<const Interest> /*interests*/, Deadline /*deadline*/) {}
  // Ends a sleep on the bell. Any thread.
  virtual void ring_own_bell() noexcept {}
  // Appends what to poll for these interests; those in peers of other groups are passed over.
  virtual void add_handles(std::span<const Interest> /*interests*/,
                           std::vector<pollfd>& /*entries*/) {}
  // `entries` are those that add_handles() has added.
  virtual void after_poll(std::span<const Interest> /*interests*/,
                          std::span<const pollfd> /*entries*/) {}

 private:
  std::vector<std::unique_ptr<PeerLink>> links_;
};

}  // namespace gxp

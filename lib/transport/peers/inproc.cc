#include "lib/transport/peers/inproc.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/transport/peers/peer_transport.h"

namespace gxp {

// Only its sender changes a message; the receiver copies from it, and marks it as taken.
struct InprocWorld::State {
  struct Offer {
    PendingMessage* send = nullptr;
    bool taken = false;
  };
  struct Rank {
    std::condition_variable rung;
    uint64_t rings = 0;                 // what it may sleep on has changed so many times
    std::optional<std::string> closed;  // why, once it is aborted or destroyed
  };
  explicit State(int world_size)
      : ranks(size_t(world_size)), offers(size_t(world_size) * size_t(world_size)) {}
  Rank& operator[](int rank) { return ranks[size_t(rank)]; }
  std::deque<Offer>& offered(int from, int to) {
    return offers[size_t(from) * ranks.size() + size_t(to)];
  }
  void ring(int rank);  // the mutex is held
  void close(int rank, std::string_view reason);

  std::mutex mutex;  // guards all below, and the memory of messages that are offered
  std::vector<Rank> ranks;
  std::vector<std::deque<Offer>> offers;  // by sender and receiver, in order
};

void InprocWorld::State::ring(int rank) {
  ++(*this)[rank].rings;
  (*this)[rank].rung.notify_all();
}

void InprocWorld::State::close(int rank, std::string_view reason) {
  const std::lock_guard lock(mutex);
  if (!(*this)[rank].closed) (*this)[rank].closed = reason;
  for (int other = 0; other < int(ranks.size()); ++other) {
    offered(rank, other).clear();  // no peer touches its memory from now on
    ring(other);
  }
}

namespace {

class InprocLink final : public PeerLink {
 public:
  InprocLink(InprocWorld::State& world, int rank, int peer)
      : world_(world), rank_(rank), peer_(peer) {}

  bool supports_memory(MemorySpace space) const override { return space == MemorySpace::kHost; }
  void post_send(PendingMessage& send) override;
  bool progress() override;
  std::string_view closed() const override { return closed_; }
  void shut_down(std::string_view reason) noexcept override { world_.close(rank_, reason); }

 private:
  void note_end();
  bool finish_taken();
  bool take_offered();

  InprocWorld::State& world_;
  const int rank_;
  const int peer_;
  std::string closed_;  // as of the start of the last progress()
};

void InprocLink::post_send(PendingMessage& send) {
  const std::lock_guard lock(world_.mutex);
  if (world_[rank_].closed) return;  // wait() throws
  world_.offered(rank_, peer_).push_back({&send});
  world_.ring(peer_);
}

// Whether the peer has ended is asked first: what it did before its end is then still moved.
bool InprocLink::progress() {
  note_end();
  const bool sent = finish_taken();
  const bool received = take_offered();
  return sent || received;
}

void InprocLink::note_end() {
  const std::lock_guard lock(world_.mutex);
  const auto& reason = world_[peer_].closed;
  if (closed_.empty() && reason) closed_ = "was lost: " + *reason;
}

bool InprocLink::finish_taken() {
  const std::lock_guard lock(world_.mutex);
  auto& mine = world_.offered(rank_, peer_);
  bool moved = false;
  for (; !mine.empty() && mine.front().taken; mine.pop_front()) {
    messages().finish(*mine.front().send);
    moved = true;
  }
  return moved;
}

// The handler of unexpected messages may do anything, so begin() is called without the mutex; only
// the sender's end can take the offer away meanwhile.
bool InprocLink::take_offered() {
  const auto next = [&] {
    auto& theirs = world_.offered(peer_, rank_);
    const auto offer = std::ranges::find(theirs, false, &InprocWorld::State::Offer::taken);
    return offer == theirs.end() ? nullptr : &*offer;
  };
  bool moved = false;
  while (messages().awaits()) {
    std::unique_lock lock(world_.mutex);
    const InprocWorld::State::Offer* begun = next();
    if (begun == nullptr) break;
    const Tag tag = begun->send->tag;
    const size_t bytes = begun->send->bytes;
    lock.unlock();
    PendingMessage& message = messages().begin(tag, bytes);
    lock.lock();
    InprocWorld::State::Offer* offer = next();
    if (offer == nullptr) break;
    deliver(message, {offer->send->source, bytes});
    offer->taken = true;
    world_.ring(peer_);
    lock.unlock();
    messages().finish(message);
    moved = true;
  }
  return moved;
}

class InprocLinks final : public LinkGroup {
 public:
  InprocLinks(InprocWorld::State& world, int rank)
      : LinkGroup(make_links(world, rank)), world_(world), rank_(rank) {}
  ~InprocLinks() override { world_.close(rank_, "closed its connection"); }

  // It sleeps at once: its peers need the CPU.
  WaitPolicy wait_policy() const override { return {.oversubscribed = true}; }
  bool has_bell() const override { return true; }
  void arm(Wake /*how*/) override {
    const std::lock_guard lock(world_.mutex);
    armed_ = world_[rank_].rings;
  }
  void sleep_on_bell(std::span<const Interest> /*interests*/, Deadline deadline) override {
    std::unique_lock lock(world_.mutex);
    auto& mine = world_[rank_];
    deadline.wait(mine.rung, lock, [&] { return mine.rings != armed_; });
  }
  void ring_own_bell() noexcept override {
    const std::lock_guard lock(world_.mutex);
    world_.ring(rank_);
  }

 private:
  static std::vector<std::unique_ptr<PeerLink>> make_links(InprocWorld::State& world, int rank) {
    std::vector<std::unique_ptr<PeerLink>> links(world.ranks.size());
    for (size_t peer = 0; peer < links.size(); ++peer) {
      if (int(peer) != rank) links[peer] = std::make_unique<InprocLink>(world, rank, int(peer));
    }
    return links;
  }

  InprocWorld::State& world_;
  const int rank_;
  uint64_t armed_ = 0;
};

}  // namespace

InprocWorld::InprocWorld(int world_size) : state_(std::make_unique<State>(world_size)) {}
InprocWorld::~InprocWorld() = default;

std::unique_ptr<Transport> InprocWorld::make_transport(int rank) {
  PeerTransportParts parts{.name = "inproc",
                           .rank = rank,
                           .world_size = int(state_->ranks.size()),
                           .groups = {},
                           .hosts = {}};
  parts.groups.push_back(std::make_unique<InprocLinks>(*state_, rank));
  return std::make_unique<PeerTransport>(std::move(parts));
}

}  // namespace gxp

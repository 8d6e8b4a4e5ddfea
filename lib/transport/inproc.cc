#include "lib/transport/inproc.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/transport/pending_message.h"

namespace gxp {

struct InprocWorld::State {
  struct Rank {
    std::condition_variable changed;  // one of its operations is done, or some rank closed
    std::vector<PendingMessage*>
        unmatched;                      // started, in order; the operations live in its transport
    std::optional<std::string> closed;  // why, once it is aborted or destroyed
  };
  explicit State(int world_size) : ranks(size_t(world_size)) {}
  Rank& operator[](int rank) { return ranks[size_t(rank)]; }
  void close(int rank, std::string_view reason);

  std::mutex mutex;  // guards all below, and the operations that `unmatched` points to
  std::vector<Rank> ranks;
};

void InprocWorld::State::close(int rank, std::string_view reason) {
  const std::lock_guard lock(mutex);
  Rank& closing = ranks[size_t(rank)];
  if (!closing.closed) closing.closed = reason;
  closing.unmatched.clear();  // no peer touches its memory from now on
  for (Rank& other : ranks) other.changed.notify_all();
}

namespace {

class InprocTransport : public Transport {
 public:
  InprocTransport(InprocWorld::State& world, int rank)
      : world_(world), rank_(rank), counters_(world_size()) {}
  ~InprocTransport() override { world_.close(rank_, "closed its connection"); }

  std::string_view name() const override { return "inproc"; }
  int rank() const override { return rank_; }
  int world_size() const override { return int(world_.ranks.size()); }
  Ticket send(int peer, Tag tag, ConstMemory data) override {
    return start(make_send(peer, tag, data));
  }
  Ticket recv(int peer, Tag tag, Memory data) override {
    return start(make_receive(peer, tag, data));
  }
  Ticket recv_and_combine(int peer, Tag tag, Memory target, const Combiner& combiner) override {
    return start(make_combine(peer, tag, target, combiner));
  }
  void wait(Ticket ticket, Deadline deadline) override;
  void abort(std::string_view reason) noexcept override { world_.close(rank_, reason); }
  void on_unexpected(UnexpectedMessage handler) override { unexpected_ = std::move(handler); }
  WireCounters counters() const override { return counters_.read(); }
  uint64_t bytes_sent_to(int peer) const override { return counters_.bytes_sent_to(peer); }

 private:
  Ticket start(const PendingMessage& operation);
  bool match(PendingMessage& mine);
  void match_receives();
  bool report_unexpected(std::unique_lock<std::mutex>& lock, int peer);
  void check_open(int peer);

  InprocWorld::State& world_;
  const int rank_;
  OperationTable operations_;
  AtomicCounters counters_;
  UnexpectedMessage unexpected_;
};

Ticket InprocTransport::start(const PendingMessage& operation) {
  GXP_ASSERT(operation.peer >= 0 && operation.peer < world_size() && operation.peer != rank_);
  const std::lock_guard lock(world_.mutex);
  match_receives();  // they are older than this one
  const Ticket ticket = operations_.add(operation);
  PendingMessage& mine = operations_[ticket];
  if (mine.done || world_[rank_].closed) return ticket;
  if (match(mine)) return ticket;
  world_[rank_].unmatched.push_back(&mine);
  if (mine.sends) world_[mine.peer].changed.notify_all();  // it may be unexpected
  return ticket;
}

// Copies the message if the peer has started the other half. The peer's oldest half comes first,
// which keeps the order. Arriving bytes are combined on the receiver's thread: it takes the message
// as soon as it waits.
bool InprocTransport::match(PendingMessage& mine) {
  auto& theirs = world_[mine.peer].unmatched;
  const auto found = std::find_if(theirs.begin(), theirs.end(), [&](const PendingMessage* other) {
    return other->peer == rank_ && other->tag == mine.tag && other->sends != mine.sends;
  });
  if (found == theirs.end()) return false;
  PendingMessage& other = **found;
  if (mine.sends && other.combiner.apply != nullptr) return false;
  theirs.erase(found);
  const PendingMessage& send = mine.sends ? mine : other;
  PendingMessage& receive = mine.sends ? other : mine;
  receive.arrived_bytes = send.bytes;
  accept(receive, {send.source, std::min(send.bytes, receive.bytes)});
  mine.done = other.done = true;
  world_[mine.peer].changed.notify_all();
  return true;
}

// All that this rank has started, in order: a receive that stores must not be overtaken by one that
// combines.
void InprocTransport::match_receives() {
  std::erase_if(world_[rank_].unmatched,
                [&](PendingMessage* mine) { return !mine->sends && match(*mine); });
}

// Tells of one message of `peer` that no started receive asks for; false if there is none.
bool InprocTransport::report_unexpected(std::unique_lock<std::mutex>& lock, int peer) {
  if (!unexpected_) return false;
  const auto& mine = world_[rank_].unmatched;
  for (PendingMessage* send : world_[peer].unmatched) {
    const auto asks = [&](const PendingMessage* receive) {
      return !receive->sends && receive->peer == peer && receive->tag == send->tag;
    };
    if (!send->sends || send->peer != rank_ || send->reported) continue;
    if (std::any_of(mine.begin(), mine.end(), asks)) continue;
    send->reported = true;
    const Tag tag = send->tag;
    lock.unlock();
    unexpected_(peer, tag);
    lock.lock();
    return true;
  }
  return false;
}

void InprocTransport::check_open(int peer) {
  if (const auto& own = world_[rank_].closed) throw Error(ErrorKind::kPeer, *own);
  if (const auto& theirs = world_[peer].closed) {
    world_[rank_].unmatched.clear();
    fail(ErrorKind::kPeer, "rank {} was lost: {}", peer, *theirs);
  }
}

void InprocTransport::wait(Ticket ticket, Deadline deadline) {
  std::unique_lock lock(world_.mutex);
  PendingMessage& operation = operations_[ticket];
  for (;;) {
    match_receives();
    if (!operation.sends && report_unexpected(lock, operation.peer)) continue;
    if (operation.done) break;
    check_open(operation.peer);
    if (deadline.expired()) {
      world_[rank_].unmatched.clear();
      fail_late(operation, deadline);
    }
    world_[rank_].changed.wait_until(lock, deadline.when());
  }
  if (!operation.sends) check_size(operation);
  if (operation.bytes > 0) counters_.add(operation);
  operations_.remove(ticket);
}

}  // namespace

InprocWorld::InprocWorld(int world_size) : state_(std::make_unique<State>(world_size)) {}
InprocWorld::~InprocWorld() = default;

std::unique_ptr<Transport> InprocWorld::make_transport(int rank) {
  return std::make_unique<InprocTransport>(*state_, rank);
}

}  // namespace gxp

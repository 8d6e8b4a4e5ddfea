#include "lib/transport/inproc.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/transport/operation.h"

namespace gxp {

struct InprocWorld::State {
  struct Rank {
    std::condition_variable changed;    // one of its operations is done, or some rank closed
    std::vector<Operation*> unmatched;  // started, in order; the operations live in its transport
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
  InprocTransport(InprocWorld::State& world, int rank) : world_(world), rank_(rank) {}
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
  void wait(Ticket ticket, Deadline deadline) override;
  void abort(std::string_view reason) noexcept override { world_.close(rank_, reason); }
  WireCounters counters() const override { return counters_.read(); }

 private:
  Ticket start(const Operation& operation);
  bool match(Operation& mine);
  void check_open(int peer);

  InprocWorld::State& world_;
  const int rank_;
  OperationTable operations_;
  AtomicCounters counters_;
};

Ticket InprocTransport::start(const Operation& operation) {
  GXP_ASSERT(operation.peer >= 0 && operation.peer < world_size() && operation.peer != rank_);
  const std::lock_guard lock(world_.mutex);
  const Ticket ticket = operations_.add(operation);
  Operation& mine = operations_[ticket];
  if (mine.done || world_[rank_].closed) return ticket;
  if (!match(mine)) world_[rank_].unmatched.push_back(&mine);
  return ticket;
}

// Copies the message if the peer has started the other half. The peer's oldest half comes first,
// which keeps the order.
bool InprocTransport::match(Operation& mine) {
  auto& theirs = world_[mine.peer].unmatched;
  const auto found = std::find_if(theirs.begin(), theirs.end(), [&](const Operation* other) {
    return other->peer == rank_ && other->tag == mine.tag && other->sends != mine.sends;
  });
  if (found == theirs.end()) return false;
  Operation& other = **found;
  theirs.erase(found);
  const Operation& send = mine.sends ? mine : other;
  Operation& receive = mine.sends ? other : mine;
  receive.arrived_bytes = send.bytes;
  std::memcpy(receive.target, send.source, std::min(send.bytes, receive.bytes));
  mine.done = other.done = true;
  world_[mine.peer].changed.notify_all();
  return true;
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
  Operation& operation = operations_[ticket];
  while (!operation.done) {
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

// Messages over byte streams: all that shm and tcp share. A transport gives one ByteStream per peer
// and a Sleeper; StreamTransport does the rest.
//
// On a stream, each message is a header (tag, bytes) and its payload, one after the other.
//   - A message whose receive is posted goes straight into the user's span.
//   - Nothing is read from a peer that owes this rank nothing: its stream fills up, and its sends
//     wait. So unasked-for data is bounded by what the stream itself holds.
//   - If a receive is posted but another message comes first, that one is parked in memory until
//     its receive is posted. Without that, receiving in another order than sent would block.
// Cost: a loop over the peers with open operations per look; no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/net/store/store.h"
#include "lib/transport/arena/shared_space.h"
#include "lib/transport/backoff.h"
#include "lib/transport/pending_message.h"
#include "lib/transport/transport.h"

namespace gxp {

// Bytes to and from one peer, in order. Never waits.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Takes as many bytes as fit now from the front of `head`, then of `body`; returns how many.
  virtual size_t write_some(ConstMemory head, ConstMemory body) = 0;
  // Fills the front of `target` with what is there; returns how many bytes.
  virtual size_t read_some(Memory target) = 0;
  // The same for what `receive` still lacks, stored or combined straight from where it is.
  virtual size_t deliver_some(PendingMessage& receive) = 0;
  // "closed its connection": why nothing will be written or read any more, once a call of
  // write_some or read_some that came after it was set has moved nothing; "" while the peer is
  // there.
  [[nodiscard]] virtual std::string_view closed() const = 0;
  // Wakes the peer if it sleeps in wait_until().
  virtual void ring() {}
  // Lets the peer see the end. Any thread, also during the other calls.
  virtual void shut_down() noexcept = 0;
};

// What a rank waits for on one stream.
struct Interest {
  int peer = 0;
  bool to_read = false;
  bool to_write = false;
};

// Sleeps until a peer moves. wake() may come from any thread, the others from the waiting one.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Called before each look at the `open` streams with operations.
  virtual void look(size_t /*open*/) {}
  // What a peer or wake() does after this call ends the sleep.
  virtual void prepare() = 0;
  // Returns when a stream of interest may have moved or closed, or at the deadline, or earlier.
  virtual void sleep(std::span<const Interest> interests, Deadline deadline) = 0;
  // Ends a prepared sleep, slept or not.
  virtual void done() = 0;
  virtual void wake() noexcept = 0;
};

struct StreamTransportParts {
  std::string_view name;
  int rank = 0;
  // One per peer, null for this rank itself.
  std::vector<std::unique_ptr<ByteStream>> streams;
  std::unique_ptr<Sleeper> sleeper;
  Backoff backoff;
  std::vector<int> hosts;                // as Transport::hosts() has them
  std::unique_ptr<SharedSpace> space{};  // may be null
  Store* store = nullptr;                // may be null: then failures have no first cause to name
};

class StreamTransport : public Transport, private SpaceWaiter {
 public:
  explicit StreamTransport(StreamTransportParts parts);
  ~StreamTransport() override;

  std::string_view name() const override { return parts_.name; }
  int rank() const override { return parts_.rank; }
  int world_size() const override { return int(parts_.streams.size()); }
  Ticket send(int peer, Tag tag, ConstMemory data) override;
  Ticket recv(int peer, Tag tag, Memory data) override;
  Ticket recv_and_combine(int peer, Tag tag, Memory target, const Combiner& combiner) override;
  void wait(Ticket ticket, Deadline deadline) override;
  void abort(std::string_view reason) noexcept override;
  void on_unexpected(UnexpectedMessage handler) override { unexpected_ = std::move(handler); }
  std::span<const int> hosts() const override { return parts_.hosts; }
  SharedSpace* shared_space() override { return parts_.space.get(); }
  WireCounters counters() const override { return counters_.read(); }
  uint64_t bytes_sent_to(int peer) const override { return counters_.bytes_sent_to(peer); }

 private:
  struct Header {
    uint64_t magic = 0;
    Tag tag = 0;
    uint64_t bytes = 0;
  };
  // A message that came before its receive.
  struct Parked {
    Tag tag = 0;
    size_t moved = 0;
    std::vector<std::byte> payload;
  };
  struct Peer {
    int rank = 0;
    ByteStream* stream = nullptr;
    bool is_open = false;                     // in open_
    std::deque<PendingMessage*> to_send;      // the first one may be under way
    size_t header_sent = 0;                   // bytes of its header
    std::vector<PendingMessage*> to_receive;  // no message yet, in order
    size_t unfinished_receives = 0;           // these and `arriving`
    Header header;                            // of the message that is arriving
    size_t header_read = 0;                   // bytes; all: its payload is arriving
    PendingMessage* arriving = nullptr;       // its receive; null: it goes to parked.back()
    std::list<Parked> parked;                 // in order; complete but for the last one at most
  };

  void wait_until(const std::function<bool()>& ready, std::span<const int> peers,
                  Deadline deadline) override;
  void ring(int peer) override { peers_[size_t(peer)].stream->ring(); }
  Ticket start_receive(const PendingMessage& receive);
  void open(Peer& peer);
  bool progress();  // these return whether anything moved
  bool progress(Peer& peer);
  bool push(Peer& peer);
  bool pull_checked(Peer& peer);
  bool pull(Peer& peer);
  bool read_header(Peer& peer);
  bool read_payload(Peer& peer);
  void begin_message(Peer& peer);
  void park(Peer& peer);
  void take_parked(Peer& peer, std::list<Parked>::iterator message, PendingMessage& receive);
  void finish(PendingMessage& operation);
  void sleep(Deadline deadline);
  void check_aborted();
  void listen_to_store();
  [[noreturn]] void fail_lost(const Peer& peer);

  StreamTransportParts parts_;
  std::vector<Peer> peers_;
  std::vector<Peer*> open_;  // those with operations, and some that have none any more
  OperationTable operations_;
  AtomicCounters counters_;
  size_t parked_bytes_ = 0;  // of all peers
  UnexpectedMessage unexpected_;
  std::vector<Interest> interests_;
  struct Alarm;
  std::shared_ptr<Alarm> alarm_;  // owners: this transport and the store, which may outlive it
  std::atomic<bool> aborted_{false};
  std::mutex reason_mutex_;  // guards reason_
  std::string reason_;
};

}  // namespace gxp

// The transport of a job: it has a link to each peer, which the table chose (table.h), and owns
// what all links share: tags and parking (peer_messages.h), waiting (link_waiter.h), deadlines,
// abort, the store's verdicts, counters.
// Cost: a loop over the peers with operations per look; no lock.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/device/device.h"
#include "lib/net/store/store.h"
#include "lib/transport/abort_flag.h"
#include "lib/transport/arena/shared_arena.h"
#include "lib/transport/link.h"
#include "lib/transport/link_waiter.h"
#include "lib/transport/pending_message.h"
#include "lib/transport/transport.h"

namespace gxp {

struct PeerTransportParts {
  std::string name;  // "shm+tcp"
  int rank = 0;
  int world_size = 1;
  // Together they have one link to each peer.
  std::vector<std::unique_ptr<LinkGroup>> groups;
  std::vector<int> hosts;  // as Transport::hosts() has them
  Store* store = nullptr;  // may be null: then failures have no first cause to name
  Device* gpu = nullptr;   // device whose memory messages may use if links support it; null: none
};

class PeerTransport : public Transport, private ArenaWaiter {
 public:
  explicit PeerTransport(PeerTransportParts parts);
  ~PeerTransport() override;

  std::string_view name() const override { return parts_.name; }
  int rank() const override { return parts_.rank; }
  int world_size() const override { return parts_.world_size; }
  bool supports_memory(MemorySpace space) const override;
  Ticket send(int peer, Tag tag, ConstMemory data) override;
  Ticket recv(int peer, Tag tag, Memory data) override;
  Ticket recv_and_combine(int peer, Tag tag, Memory target, const Combiner& combiner) override;
  void wait(Ticket ticket, Deadline deadline) override;
  void abort(std::string_view reason) noexcept override;
  void on_unexpected(UnexpectedMessage handler) override {
    traffic_.unexpected = std::move(handler);
  }
  std::span<const int> hosts() const override { return parts_.hosts; }
  SharedArena* shared_arena() override { return arena_; }
  void keep(ConstMemory memory) override {
    for (const auto& group : parts_.groups) group->keep(memory);
  }
  void forget(ConstMemory memory) noexcept override {
    for (const auto& group : parts_.groups) group->forget(memory);
  }
  WireCounters counters() const override { return traffic_.counters.read(); }
  uint64_t bytes_sent_to(int peer) const override { return traffic_.counters.bytes_sent_to(peer); }

 private:
  struct Peer {
    PeerMessages messages;
    PeerLink* link = nullptr;  // null: this rank itself
    bool is_open = false;      // in open_
  };

  void wait_until(const std::function<bool()>& ready, std::span<const int> peers,
                  Deadline deadline) override;
  void wake(int peer) override { peers_[size_t(peer)].link->wake_peer(); }
  void add_peers();
  Peer& peer_for(int rank, MemorySpace space);
  Ticket start_receive(PendingMessage receive);
  void open(Peer& peer);
  bool progress();  // whether anything moved
  void sleep(Deadline deadline);
  void listen_to_store();
  [[noreturn]] void fail_lost(const Peer& peer);
  // After a throw: operations' memory is the caller's again.
  void stop() noexcept;

  PeerTransportParts parts_;
  Traffic traffic_;
  std::vector<Peer> peers_;
  std::vector<Peer*> open_;  // peers with operations, and some that no longer have any
  OperationTable operations_;
  LinkWaiter waiter_;
  std::vector<Interest> interests_;
  SharedArena* arena_ = nullptr;
  struct AbortRelay;
  std::shared_ptr<AbortRelay> relay_;  // owners: this transport and the store, which may outlive it
  AbortFlag aborted_;
};

}  // namespace gxp

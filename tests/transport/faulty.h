// Transports around another one: one that passes everything on, and one that breaks on purpose.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/transport/transport.h"

namespace gxp {

// Passes everything on to the transport that it owns; a base for those that change a little.
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  Ticket send(int peer, Tag tag, ConstMemory data) override {
    return inner_->send(peer, tag, data);
  }
  Ticket recv(int peer, Tag tag, Memory data) override { return inner_->recv(peer, tag, data); }
  Ticket recv_and_combine(int peer, Tag tag, Memory target, const Combiner& combiner) override {
    return inner_->recv_and_combine(peer, tag, target, combiner);
  }
  void wait(Ticket ticket, Deadline deadline) override { inner_->wait(ticket, deadline); }
  void abort(std::string_view reason) noexcept override { inner_->abort(reason); }
  void on_unexpected(UnexpectedMessage handler) override {
    inner_->on_unexpected(std::move(handler));
  }
  std::span<const int> hosts() const override { return inner_->hosts(); }
  SharedArena* shared_arena() override { return inner_->shared_arena(); }
  WireCounters counters() const override { return inner_->counters(); }
  uint64_t bytes_sent_to(int peer) const override { return inner_->bytes_sent_to(peer); }

 private:
  std::unique_ptr<Transport> inner_;
};

enum class Fault : uint8_t {
  kCut,       // the connections of this rank end; send() throws kPeer
  kDelay,     // the message leaves FaultPlan::delay later, and so do those behind it
  kTruncate,  // only the first half of the message is sent, as a message of its own
  kCorrupt,   // one bit of the message is flipped
};

struct FaultPlan {
  Fault fault = Fault::kCut;
  uint64_t message = 0;  // which of this rank's non-empty sends, from 0
  std::chrono::milliseconds delay{0};
};

// A base, so that it outlives the transport below, which may still read it.
struct CorruptedMessage {
  std::vector<std::byte> bytes;
};

// Breaks the one send that the plan names.
class FaultyTransport : private CorruptedMessage, public ForwardingTransport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const FaultPlan& plan)
      : ForwardingTransport(std::move(inner)), plan_(plan) {}

  Ticket send(int peer, Tag tag, ConstMemory data) override;

 private:
  FaultPlan plan_;
  uint64_t sends_ = 0;
};

inline Ticket FaultyTransport::send(int peer, Tag tag, ConstMemory data) {
  const bool planned = data.bytes > 0 && sends_++ == plan_.message;
  if (!planned) return ForwardingTransport::send(peer, tag, data);
  switch (plan_.fault) {
    case Fault::kCut:
      abort("the connections were cut by the fault plan");
      fail(ErrorKind::kPeer, "send to rank {}: the connections were cut by the fault plan", peer);
    case Fault::kDelay:
      std::this_thread::sleep_for(plan_.delay);
      break;
    case Fault::kTruncate:
      return ForwardingTransport::send(peer, tag, data.slice(0, data.bytes / 2));
    case Fault::kCorrupt:
      bytes.assign(data.data, data.data + data.bytes);
      bytes[data.bytes / 2] ^= std::byte{1};
      return ForwardingTransport::send(peer, tag, memory_of(std::as_const(bytes)));
  }
  return ForwardingTransport::send(peer, tag, data);
}

}  // namespace gxp

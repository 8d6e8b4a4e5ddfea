#include "lib/transport/stream/stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/net/socket/seal.h"

namespace gxp {

namespace {

constexpr uint64_t kMagic = 0x32707867;  // "gxp2": a stream out of step is seen at the next header
// Beyond this the ranks certainly run different programs.
constexpr size_t kMaxParkedBytes = size_t{4} << 30;
// How long the rendezvous store may take to know the first cause of a lost connection.
constexpr std::chrono::milliseconds kVerdictTime{300};

}  // namespace

// Carries the store's verdict to a transport that may be gone by then.
struct StreamTransport::Alarm {
  std::mutex mutex;  // guards transport
  StreamTransport* transport = nullptr;
};

StreamTransport::StreamTransport(StreamTransportParts parts)
    : parts_(std::move(parts)),
      peers_(parts_.streams.size()),
      counters_(int(parts_.streams.size())) {
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    peers_[rank].rank = int(rank);
    peers_[rank].stream = parts_.streams[rank].get();
  }
  if (parts_.space) parts_.space->attach(*this);
  if (parts_.store != nullptr) listen_to_store();
}

StreamTransport::~StreamTransport() {
  if (!alarm_) return;
  const std::lock_guard lock(alarm_->mutex);
  alarm_->transport = nullptr;
}

void StreamTransport::listen_to_store() {
  alarm_ = std::make_shared<Alarm>();
  alarm_->transport = this;
  parts_.store->on_abort([alarm = alarm_](const Verdict& verdict) {
    const std::lock_guard lock(alarm->mutex);
    if (alarm->transport == nullptr) return;
    alarm->transport->abort(fmt::format("rank {}: {}", verdict.rank, verdict.reason));
  });
}

Ticket StreamTransport::send(int rank, Tag tag, ConstMemory data) {
  Peer& peer = peers_.at(size_t(rank));
  GXP_ASSERT(peer.stream != nullptr);
  const Ticket ticket = operations_.add(make_send(rank, tag, data));
  PendingMessage& operation = operations_[ticket];
  if (operation.done) return ticket;
  open(peer);
  peer.to_send.push_back(&operation);
  if (peer.to_send.size() == 1) push(peer);
  return ticket;
}

Ticket StreamTransport::recv(int rank, Tag tag, Memory data) {
  return start_receive(make_receive(rank, tag, data));
}

Ticket StreamTransport::recv_and_combine(int rank, Tag tag, Memory target,
                                         const Combiner& combiner) {
  return start_receive(make_combine(rank, tag, target, combiner));
}

Ticket StreamTransport::start_receive(const PendingMessage& receive) {
  Peer& peer = peers_.at(size_t(receive.peer));
  GXP_ASSERT(peer.stream != nullptr);
  const Ticket ticket = operations_.add(receive);
  PendingMessage& operation = operations_[ticket];
  if (operation.done) return ticket;
  open(peer);
  ++peer.unfinished_receives;
  const auto parked =
      std::find_if(peer.parked.begin(), peer.parked.end(),
                   [&](const Parked& message) { return message.tag == receive.tag; });
  if (parked == peer.parked.end()) {
    peer.to_receive.push_back(&operation);
  } else {
    take_parked(peer, parked, operation);
  }
  return ticket;
}

void StreamTransport::take_parked(Peer& peer, std::list<Parked>::iterator message,
                                  PendingMessage& receive) {
  receive.arrived_bytes = message->payload.size();
  if (receive.arrived_bytes != receive.bytes) return finish(receive);  // for wait() to find out
  accept(receive, {message->payload.data(), message->moved});
  if (message->moved == message->payload.size()) {
    finish(receive);
  } else {
    peer.arriving = &receive;
  }
  parked_bytes_ -= message->payload.size();
  peer.parked.erase(message);
}

void StreamTransport::wait(Ticket ticket, Deadline deadline) {
  PendingMessage& operation = operations_[ticket];
  Backoff backoff = parts_.backoff;
  while (!operation.done) {
    check_aborted();
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
}

void StreamTransport::wait_until(const std::function<bool()>& ready, std::span<const int> peers,
                                 Deadline deadline) {
  Backoff backoff = parts_.backoff;
  while (!ready()) {
    check_aborted();
    if (backoff.keep_awake()) continue;
    for (const int peer : peers) {
      const auto& stream = peers_[size_t(peer)].stream;
      if (stream != nullptr && !stream->closed().empty() && !ready()) {
        fail_lost(peers_[size_t(peer)]);
      }
    }
    interests_.clear();
    for (const int peer : peers) {
      if (peer != rank()) interests_.push_back({peer, true, false});
    }
    parts_.sleeper->prepare();
    if (!aborted_ && !ready()) parts_.sleeper->sleep(interests_, deadline);
    parts_.sleeper->done();
    if (deadline.expired() && !ready()) {
      fail(ErrorKind::kPeer, "not complete after {:.3g} s", deadline.seconds());
    }
  }
}

void StreamTransport::open(Peer& peer) {
  if (!peer.is_open) open_.push_back(&peer);
  peer.is_open = true;
}

bool StreamTransport::progress() {
  bool moved = false;
  parts_.sleeper->look(open_.size());
  for (size_t i = 0; i < open_.size(); ++i) {
    Peer& peer = *open_[i];
    moved |= progress(peer);
    if (!peer.to_send.empty() || peer.unfinished_receives > 0) continue;
    peer.is_open = false;
    open_[i--] = open_.back();
    open_.pop_back();
  }
  return moved;
}

bool StreamTransport::progress(Peer& peer) {
  const bool sent = !peer.to_send.empty() && push(peer);
  const bool received = peer.unfinished_receives > 0 && pull_checked(peer);
  if (sent || received) return true;
  const bool waits = !peer.to_send.empty() || peer.unfinished_receives > 0;
  if (waits && !peer.stream->closed().empty()) fail_lost(peer);
  return false;
}

bool StreamTransport::push(Peer& peer) {
  bool moved = false;
  while (!peer.to_send.empty()) {
    PendingMessage& send = *peer.to_send.front();
    const Header header{kMagic, send.tag, send.bytes};
    const auto* head = reinterpret_cast<const std::byte*>(&header);
    const size_t head_bytes = sizeof header - peer.header_sent;
    const size_t taken = peer.stream->write_some(
        {head + peer.header_sent, head_bytes}, {send.source + send.moved, send.bytes - send.moved});
    if (taken == 0) break;
    moved = true;
    const size_t of_head = std::min(taken, head_bytes);
    peer.header_sent += of_head;
    send.moved += taken - of_head;
    if (send.moved < send.bytes) continue;
    finish(send);
    peer.to_send.pop_front();
    peer.header_sent = 0;
  }
  return moved;
}

// What does not carry its seal is this rank's to report: the others see nothing of it.
bool StreamTransport::pull_checked(Peer& peer) {
  try {
    return pull(peer);
  } catch (const Tampered& tampered) {
    if (parts_.store != nullptr) parts_.store->abort(rank(), tampered.what());
    throw;
  }
}

bool StreamTransport::pull(Peer& peer) {
  bool moved = false;
  while (peer.unfinished_receives > 0) {
    const bool step = peer.header_read < sizeof(Header) ? read_header(peer) : read_payload(peer);
    if (!step) break;
    moved = true;
  }
  return moved;
}

bool StreamTransport::read_header(Peer& peer) {
  auto* head = reinterpret_cast<std::byte*>(&peer.header);
  const size_t count =
      peer.stream->read_some({head + peer.header_read, sizeof(Header) - peer.header_read});
  peer.header_read += count;
  if (peer.header_read == sizeof(Header)) begin_message(peer);
  return count > 0;
}

// Finds the message's place: the oldest receive with its tag, or the parking place.
void StreamTransport::begin_message(Peer& peer) {
  const Header& header = peer.header;
  if (header.magic != kMagic || header.bytes == 0) {
    fail(ErrorKind::kPeer, "receive from rank {}: its stream is corrupt", peer.rank);
  }
  auto& posted = peer.to_receive;
  const auto found = std::find_if(posted.begin(), posted.end(), [&](const PendingMessage* receive) {
    return receive->tag == header.tag;
  });
  if (found != posted.end()) {
    peer.arriving = *found;
    posted.erase(found);
    peer.arriving->arrived_bytes = header.bytes;
    check_size(*peer.arriving);
  } else {
    park(peer);
  }
}

void StreamTransport::park(Peer& peer) {
  const Header& header = peer.header;
  if (header.bytes > kMaxParkedBytes - parked_bytes_) {
    fail(
        ErrorKind::kPeer,
        "receive from rank {}: it sent more than {} that this rank does not ask for; the ranks run "
        "different operations",
        peer.rank, format_bytes(kMaxParkedBytes));
  }
  parked_bytes_ += header.bytes;
  peer.parked.push_back({header.tag, 0, std::vector<std::byte>(header.bytes)});
  if (unexpected_) unexpected_(peer.rank, header.tag);
}

bool StreamTransport::read_payload(Peer& peer) {
  PendingMessage* receive = peer.arriving;
  size_t count = 0;
  size_t moved = 0;
  if (receive != nullptr) {
    count = peer.stream->deliver_some(*receive);
    moved = receive->moved;
    if (moved == receive->bytes) finish(*receive);
  } else {
    Parked& parked = peer.parked.back();
    count = peer.stream->read_some(
        memory_of(parked.payload).slice(parked.moved, peer.header.bytes - parked.moved));
    moved = parked.moved += count;
  }
  if (moved == peer.header.bytes) {
    peer.arriving = nullptr;
    peer.header_read = 0;
  }
  return count > 0;
}

void StreamTransport::finish(PendingMessage& operation) {
  operation.done = true;
  counters_.add(operation);
  if (!operation.sends) --peers_[size_t(operation.peer)].unfinished_receives;
}

void StreamTransport::sleep(Deadline deadline) {
  interests_.clear();
  for (const Peer& peer : peers_) {
    const Interest interest{peer.rank, peer.unfinished_receives > 0, !peer.to_send.empty()};
    if (interest.to_read || interest.to_write) interests_.push_back(interest);
  }
  parts_.sleeper->prepare();
  if (!aborted_ && !progress()) parts_.sleeper->sleep(interests_, deadline);
  parts_.sleeper->done();
}

void StreamTransport::abort(std::string_view reason) noexcept {
  {
    const std::lock_guard lock(reason_mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  aborted_ = true;
  for (const auto& stream : parts_.streams) {
    if (stream) stream->shut_down();
  }
  parts_.sleeper->wake();
}

void StreamTransport::check_aborted() {
  if (!aborted_) return;
  const std::lock_guard lock(reason_mutex_);
  throw Error(ErrorKind::kPeer, reason_);
}

// A peer that reacts to the first failure closes its connections too, so the store, which knows the
// first cause, is asked before the peer is blamed.
void StreamTransport::fail_lost(const Peer& peer) {
  check_aborted();
  if (parts_.store != nullptr) {
    const auto verdict = parts_.store->wait_verdict(Deadline::after(kVerdictTime));
    check_aborted();
    if (verdict) fail(ErrorKind::kPeer, "rank {}: {}", verdict->rank, verdict->reason);
  }
  fail(ErrorKind::kPeer, "rank {} {}", peer.rank, peer.stream->closed());
}

}  // namespace gxp

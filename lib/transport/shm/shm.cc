#include "lib/transport/shm/shm.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/resource_limits.h"
#include "lib/net/store/facts.h"
#include "lib/transport/shm/shm_stream.h"
#include "lib/transport/stream/local_mesh.h"
#include "lib/transport/stream/stream_link.h"

namespace gxp {

namespace {

constexpr std::chrono::milliseconds kLook{20};         // between two looks at the sockets
constexpr std::chrono::microseconds kYieldTime{1000};  // before sleeping

class ShmLinks final : public LinkGroup {
 public:
  // `streams` by rank, those of the links.
  ShmLinks(std::vector<std::unique_ptr<PeerLink>> links, std::vector<ShmStream*> streams,
           ShmSegment mine, std::unique_ptr<SharedArena> arena)
      : LinkGroup(std::move(links)),
        streams_(std::move(streams)),
        mine_(std::move(mine)),
        arena_(std::move(arena)) {}

  WaitPolicy wait_policy() const override { return {arena_->oversubscribed(), kYieldTime}; }
  SharedArena* shared_arena() override { return arena_.get(); }
  void arm(Wake how) override {
    armed_ = bell().prepare(how == Wake::kBell ? ShmDoorbell::kOnFutex : ShmDoorbell::kOnSockets);
  }
  void disarm() override { bell().done(); }
  bool has_bell() const override { return true; }
  void sleep_on_bell(std::span<const Interest> interests, Deadline deadline) override;
  void ring_own_bell() noexcept override { bell().ring_always(); }
  void add_handles(std::span<const Interest> interests, std::vector<pollfd>& entries) override;
  void after_poll(std::span<const Interest> interests, std::span<const pollfd> entries) override;

 private:
  ShmDoorbell& bell() const { return bell_of(mine_); }

  std::vector<ShmStream*> streams_;
  ShmSegment mine_;
  std::unique_ptr<SharedArena> arena_;
  std::vector<pollfd> entries_;
  uint32_t armed_ = 0;
};

// The bell tells of what peers write; only their sockets tell that they have ended.
void ShmLinks::sleep_on_bell(std::span<const Interest> interests, Deadline deadline) {
  const auto until = Deadline::after(std::min<Deadline::Duration>(kLook, deadline.remaining()));
  if (bell().sleep(armed_, until)) return;
  entries_.clear();
  for (const Interest& interest : interests) {
    entries_.push_back({streams_[size_t(interest.peer)]->socket(), POLLIN, 0});
  }
  if (::poll(entries_.data(), entries_.size(), 0) <= 0) return;
  for (size_t i = 0; i < interests.size(); ++i) {
    if (entries_[i].revents != 0) streams_[size_t(interests[i].peer)]->read_bells();
  }
}

// Any peer of this host may ring, so all their sockets are waited for, but those that have ended.
void ShmLinks::add_handles(std::span<const Interest> /*interests*/, std::vector<pollfd>& entries) {
  for (const ShmStream* stream : streams_) {
    const bool open = stream != nullptr && stream->closed().empty();
    entries.push_back({open ? stream->socket() : -1, POLLIN, 0});
  }
}

void ShmLinks::after_poll(std::span<const Interest> /*interests*/,
                          std::span<const pollfd> entries) {
  for (size_t peer = 0; peer < streams_.size(); ++peer) {
    if (entries[peer].revents != 0) streams_[peer]->read_bells();
  }
}

// The bytes of this rank's segment, or why it can have none.
ShmOffer own_offer(const TransportContext& context) {
  const auto refuse = [&](const std::string& why) -> ShmOffer {
    return {.obstacle = fmt::format("cannot share memory: {} (rank {})", why, context.rank)};
  };
  if (const Support memory = supports_shared_memory(); !memory) return refuse(memory.reason);
  const auto ranks = std::count(context.hosts.begin(), context.hosts.end(), context.host);
  if (const size_t bytes = SharedArena::segment_bytes(int(ranks))) return {.arena_bytes = bytes};
  const auto text = [](uint64_t bytes) { return bytes == 0 ? "none" : format_bytes(bytes); };
  return refuse(fmt::format(
      "the limits leave no room for it (address space, ulimit -v: {}; size of files, ulimit -f: "
      "{})",
      text(address_space_limit()), text(file_size_limit())));
}

}  // namespace

void survey_shm(TransportContext& context) {
  const auto all =
      exchange_facts(own_offer(context), *context.store, "shared memory", context.deadline);
  context.shm.clear();
  std::map<std::string, ShmOffer> of_hosts;  // the least that a rank there can share
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const ShmOffer& offer = all[rank];
    const auto [host, first] = of_hosts.try_emplace(context.hosts[rank], offer);
    if (!first && offer.arena_bytes < host->second.arena_bytes) host->second = offer;
  }
  for (const std::string& host : context.hosts) context.shm.push_back(of_hosts[host]);
}

Reach shm_reaches(const TransportContext& context, int a, int b) {
  const std::string& host = context.hosts[size_t(a)];
  if (host == context.hosts[size_t(b)] && host != "unknown") {
    if (context.shm.empty() || a == b || context.shm[size_t(a)].arena_bytes > 0)
      return {true, "same host"};
    return {false, context.shm[size_t(a)].obstacle};
  }
  return {false, "are on different hosts, or in containers without a common network namespace"};
}

std::unique_ptr<LinkGroup> connect_shm(const TransportContext& context, const JoinedPairs& joins) {
  if (!context.shm.empty() && context.shm[size_t(context.rank)].arena_bytes == 0) {
    (void)connect_local_mesh(context, "shm", joins);  // all ranks take part
    return nullptr;
  }
  ShmPeers peers = connect_shm_streams(context, joins);
  std::vector<std::unique_ptr<PeerLink>> links(peers.streams.size());
  std::vector<ShmStream*> streams(peers.streams.size());
  for (size_t peer = 0; peer < links.size(); ++peer) {
    if (!peers.streams[peer]) continue;
    streams[peer] = peers.streams[peer].get();
    links[peer] = std::make_unique<StreamLink>(std::move(peers.streams[peer]));
  }
  return std::make_unique<ShmLinks>(std::move(links), std::move(streams), std::move(peers.mine),
                                    std::move(peers.arena));
}

}  // namespace gxp

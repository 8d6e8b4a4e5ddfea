#include "lib/transport/verbs/verbs.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/transport/verbs/verbs_context.h"
#include "lib/transport/verbs/verbs_links.h"

namespace gxp {

namespace {

constexpr size_t kMostKept = 1024;

// Makes the links of one rank: all objects first, then the exchange of their addresses, then the
// connections.
class VerbsConnector {
 public:
  VerbsConnector(const TransportContext& context, const JoinedPairs& joins)
      : context_(context), joins_(joins), common_(std::make_shared<VerbsCommon>()) {}

  std::unique_ptr<LinkGroup> connect() {
    common_->verbs = load_verbs();
    open_devices();
    std::vector<std::unique_ptr<VerbsLink>> links;
    for (int peer = 0; peer < context_.world_size; ++peer) links.push_back(make_link(peer));
    exchange(links);
    // Who sends to a queue pair that is not open yet waits for the next attempt, 0.5 s.
    context_.store->barrier("verbs connected", context_.deadline);
    return std::make_unique<VerbsLinks>(std::move(links), common_, is_oversubscribed(context_));
  }

 private:
  [[nodiscard]] const VerbsOffer& offer(int rank) const {
    return verbs_of(context_).offers[size_t(rank)];
  }
  [[nodiscard]] size_t lanes(int a, int b) const {
    return a != b && joins_(a, b) ? lanes_between(offer(a), offer(b)) : 0;
  }
  [[nodiscard]] int peers() const;
  // A network that is away for longer than this, or than the 4 s that a lane can wait, is lost.
  [[nodiscard]] double patience_s() const {
    return std::min(4.0, verbs_of(context_).options.timeout_s / 2);
  }
  void open_devices();
  std::unique_ptr<VerbsLink> make_link(int peer);
  void exchange(const std::vector<std::unique_ptr<VerbsLink>>& links);
  void connect_link(int peer, VerbsLink& link, std::string_view addresses);

  const TransportContext& context_;
  const JoinedPairs& joins_;
  std::shared_ptr<VerbsCommon> common_;  // owners: see VerbsLinks
};

int VerbsConnector::peers() const {
  int count = 0;
  for (int peer = 0; peer < context_.world_size; ++peer) count += lanes(context_.rank, peer) > 0;
  return count;
}

void VerbsConnector::open_devices() {
  std::vector<VerbsDevice*> devices;
  if (offer(context_.rank).gpu.is_on()) common_->gpu = {context_.gpu, offer(context_.rank).gpu};
  const auto patience =
      std::chrono::duration_cast<Deadline::Duration>(std::chrono::duration<double>(patience_s()));
  const std::vector<VerbsPort>& ports = offer(context_.rank).ports;
  for (size_t i = 0; i < ports.size() && peers() > 0; ++i) {
    const int lanes_each = int(ports[i].queue_pairs);
    const int flushes = common_->gpu.device == nullptr ? 0 : int(kGrants);
    const int entries = peers() * (lanes_each * (kQueueEntries + kReceiveSlots) + flushes);
    common_->devices.push_back(
        std::make_unique<VerbsDevice>(common_->verbs, ports[i], entries, patience));
    devices.push_back(common_->devices.back().get());
  }
  common_->registrations =
      std::make_unique<VerbsRegistrations>(std::move(devices), kMostKept, common_->gpu);
}

std::unique_ptr<VerbsLink> VerbsConnector::make_link(int peer) {
  if (lanes(context_.rank, peer) == 0) return nullptr;
  const VerbsOffer& mine = offer(context_.rank);
  std::vector<VerbsRoute> routes;
  for (const VerbsRail& rail : rails_between(mine, offer(peer))) {
    const uint32_t pairs =
        std::min(mine.ports[rail.mine].queue_pairs, offer(peer).ports[rail.peers].queue_pairs);
    for (uint32_t i = 0; i < pairs; ++i) {
      const int receives = routes.empty() ? kReceiveSlots : int(kGrants);
      routes.push_back(
          {std::make_unique<VerbsLane>(*common_->devices[rail.mine], peer, routes.size(), receives),
           rail.mine, rail.peers});
    }
  }
  // Both ends must have the same, and peers() may differ between them.
  const bool many = context_.world_size > int(kFewPeers);
  const size_t slot_bytes = many ? kSmallSlotBytes : kSlotBytes;
  return std::make_unique<VerbsLink>(common_, peer, std::move(routes), slot_bytes);
}

// Each rank tells the addresses of its lanes to all peers, in the order of the peers.
void VerbsConnector::exchange(const std::vector<std::unique_ptr<VerbsLink>>& links) {
  std::string mine;
  for (const auto& link : links) {
    if (!link) continue;
    for (const VerbsRoute& route : link->channel().routes()) {
      const LaneAddress address = route.lane->address();
      mine.append(reinterpret_cast<const char*>(&address), sizeof address);
    }
  }
  const auto all = context_.store->gather("verbs lanes", mine, context_.deadline);
  for (int peer = 0; peer < context_.world_size; ++peer) {
    if (!links[size_t(peer)]) continue;
    size_t before = 0;
    for (int other = 0; other < context_.rank; ++other) before += lanes(peer, other);
    const size_t at = before * sizeof(LaneAddress);
    const size_t bytes = lanes(peer, context_.rank) * sizeof(LaneAddress);
    const std::string& addresses = all[size_t(peer)];
    if (at > addresses.size() || bytes > addresses.size() - at)
      fail(ErrorKind::kPeer, "connect to rank {} by RDMA: it has not sent its addresses", peer);
    connect_link(peer, *links[size_t(peer)], std::string_view(addresses).substr(at, bytes));
  }
}

void VerbsConnector::connect_link(int peer, VerbsLink& link, std::string_view addresses) {
  const VerbsOptions& options = verbs_of(context_).options;
  const VerbsOffer& mine = offer(context_.rank);
  const auto rails = rails_between(mine, offer(peer));
  for (const VerbsRoute& route : link.channel().routes()) {
    LaneAddress address;
    std::memcpy(&address, addresses.data(), sizeof address);
    addresses.remove_prefix(sizeof address);
    const auto rail = std::ranges::find(rails, route.device, &VerbsRail::mine);
    route.lane->connect(address, {.peers_port = offer(peer).ports[route.peers_rail],
                                  .kind = rail->kind,
                                  .pkey_index = uint16_t(options.pkey_index),
                                  .traffic_class = uint8_t(options.traffic_class),
                                  .patience_s = patience_s()});
  }
  link.channel().post_receives();
}

}  // namespace

std::unique_ptr<LinkGroup> connect_verbs(const TransportContext& context,
                                         const JoinedPairs& joins) {
  return VerbsConnector(context, joins).connect();
}

}  // namespace gxp

#include "lib/transport/verbs/verbs_ports.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "lib/base/error.h"

namespace gxp {

std::optional<GidKind> kind_of_gid(const std::array<uint8_t, 16>& gid) {
  constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::all_of(gid.begin() + 8, gid.end(), [](uint8_t byte) { return byte == 0; })) return {};
  if (std::equal(kMapped.begin(), kMapped.end(), gid.begin())) return GidKind::kIpv4;
  if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80) return GidKind::kLinkLocal;
  return GidKind::kIpv6;
}

std::string to_string(const VerbsGid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = kind_of_gid(gid.bytes) == GidKind::kIpv4;
  inet_ntop(v4 ? AF_INET : AF_INET6, gid.bytes.data() + (v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

std::string to_string(const VerbsPort& port) {
  return fmt::format("{} port {}", port.device.data(), port.port);
}

namespace {

constexpr char kHasPorts = 'p';
constexpr char kHasObstacle = 'o';

}  // namespace

std::string to_bytes(const VerbsOffer& offer) {
  if (offer.ports.empty()) return kHasObstacle + offer.obstacle;
  const auto* first = reinterpret_cast<const char*>(offer.ports.data());
  return kHasPorts + std::string(first, offer.ports.size() * sizeof(VerbsPort));
}

VerbsOffer parse_verbs_offer(std::string_view bytes) {
  VerbsOffer offer;
  const std::string_view rest = bytes.substr(bytes.empty() ? 0 : 1);
  if (bytes.starts_with(kHasObstacle)) {
    offer.obstacle = rest;
  } else if (bytes.starts_with(kHasPorts) && !rest.empty() &&
             rest.size() % sizeof(VerbsPort) == 0) {
    offer.ports.resize(rest.size() / sizeof(VerbsPort));
    std::memcpy(offer.ports.data(), rest.data(), rest.size());
    for (VerbsPort& port : offer.ports) port.device.back() = 0;
  } else {
    fail(ErrorKind::kPeer, "read the RDMA ports of a rank: its offer is corrupt");
  }
  return offer;
}

namespace {

// The best kind of address that both ports have.
std::optional<GidKind> common_kind(const VerbsPort& a, const VerbsPort& b) {
  for (size_t kind = 0; kind < kGidKinds; ++kind) {
    if (a.gids[kind].index >= 0 && b.gids[kind].index >= 0) return GidKind(kind);
  }
  return {};
}

}  // namespace

std::vector<VerbsRail> rails_between(const VerbsOffer& mine, const VerbsOffer& peers) {
  std::vector<VerbsRail> rails;
  const size_t most = std::min({mine.ports.size(), peers.ports.size(), kMaxRails});
  for (size_t i = 0; i < most; ++i) {
    if (mine.ports[i].ethernet != peers.ports[i].ethernet) continue;
    if (const auto kind = common_kind(mine.ports[i], peers.ports[i]))
      rails.push_back({i, i, *kind});
  }
  return rails;
}

size_t lanes_between(const VerbsOffer& mine, const VerbsOffer& peers) {
  size_t lanes = 0;
  for (const VerbsRail& rail : rails_between(mine, peers))
    lanes += std::min(mine.ports[rail.mine].queue_pairs, peers.ports[rail.peers].queue_pairs);
  return lanes;
}

std::vector<VerbsPort> share_of_ports(const std::vector<VerbsPort>& all, int local_rank,
                                      int local_size) {
  const auto ports = int(all.size());
  if (ports == 0) return {};
  if (ports <= local_size) return {all[size_t(local_rank * ports / local_size)]};
  const int first = local_rank * ports / local_size;
  const int end = std::min((local_rank + 1) * ports / local_size, first + int(kMaxRails));
  return {all.begin() + first, all.begin() + end};
}

}  // namespace gxp

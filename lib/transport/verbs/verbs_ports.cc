#include "lib/transport/verbs/verbs_ports.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

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

bool is_named(const VerbsPort& port, std::string_view name) {
  return name == port.device.data() || name == fmt::format("{}:{}", port.device.data(), port.port);
}

namespace {

constexpr char kHasPorts = 'p';
constexpr char kHasObstacle = 'o';

}  // namespace

std::string to_bytes(const VerbsOffer& offer) {
  if (offer.ports.empty()) return kHasObstacle + offer.obstacle;
  const auto* first = reinterpret_cast<const char*>(offer.ports.data());
  return kHasPorts + offer.why + '\0' + std::string(first, offer.ports.size() * sizeof(VerbsPort));
}

VerbsOffer parse_verbs_offer(std::string_view bytes) {
  VerbsOffer offer;
  const std::string_view rest = bytes.substr(bytes.empty() ? 0 : 1);
  const size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view ports = rest.substr(std::min(end + 1, rest.size()));
  if (bytes.starts_with(kHasObstacle)) {
    offer.obstacle = rest;
  } else if (bytes.starts_with(kHasPorts) && !ports.empty() &&
             ports.size() % sizeof(VerbsPort) == 0) {
    offer.why = rest.substr(0, end);
    offer.ports.resize(ports.size() / sizeof(VerbsPort));
    std::memcpy(offer.ports.data(), ports.data(), ports.size());
    for (VerbsPort& port : offer.ports) port.device.back() = 0;
  } else {
    fail(ErrorKind::kPeer, "read the RDMA ports of a rank: its offer is corrupt");
  }
  return offer;
}

namespace {

std::pair<std::string_view, uint32_t> name_of(const VerbsPort& port) {
  return {port.device.data(), port.port};
}

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
  const auto pair_up = [&](size_t i, size_t j) {
    if (rails.size() == kMaxRails || mine.ports[i].ethernet != peers.ports[j].ethernet) return;
    if (const auto kind = common_kind(mine.ports[i], peers.ports[j]))
      rails.push_back({i, j, *kind});
  };
  std::vector<size_t> my_rest, peers_rest;
  for (size_t j = 0; j < peers.ports.size(); ++j) peers_rest.push_back(j);
  for (size_t i = 0; i < mine.ports.size(); ++i) {
    const auto same = std::ranges::find_if(
        peers_rest, [&](size_t j) { return name_of(peers.ports[j]) == name_of(mine.ports[i]); });
    if (same == peers_rest.end()) {
      my_rest.push_back(i);
    } else {
      pair_up(i, *same);
      peers_rest.erase(same);
    }
  }
  std::ranges::sort(rails, {},
                    [&](const VerbsRail& rail) { return name_of(mine.ports[rail.mine]); });
  for (size_t i = 0; i < std::min(my_rest.size(), peers_rest.size()); ++i)
    pair_up(my_rest[i], peers_rest[i]);
  return rails;
}

size_t lanes_between(const VerbsOffer& mine, const VerbsOffer& peers) {
  size_t lanes = 0;
  for (const VerbsRail& rail : rails_between(mine, peers))
    lanes += std::min(mine.ports[rail.mine].queue_pairs, peers.ports[rail.peers].queue_pairs);
  return lanes;
}

std::vector<VerbsPort> share_of_ports(const std::vector<VerbsPort>& all,
                                      const VerbsSharer& sharer) {
  const auto ports = int(all.size());
  if (ports == 0) return {};
  if (ports <= sharer.count) return {all[size_t(sharer.index * ports / sharer.count)]};
  const int first = sharer.index * ports / sharer.count;
  const int end = std::min((sharer.index + 1) * ports / sharer.count, first + int(kMaxRails));
  return {all.begin() + first, all.begin() + end};
}

VerbsOffer place_on_ports(const std::vector<VerbsPort>& all, const VerbsPlace& place,
                          const VerbsSharer& alike, const VerbsSharer& local) {
  std::vector<VerbsPort> near;
  for (const std::string& name : place.ports) {
    std::ranges::copy_if(all, std::back_inserter(near),
                         [&](const VerbsPort& port) { return is_named(port, name); });
  }
  if (!near.empty())
    return {.ports = share_of_ports(near, place.shares ? alike : VerbsSharer{}), .why = place.why};
  std::string why = place.why;
  if (!place.ports.empty()) why = fmt::format("{}, {}, cannot be used", place.ports[0], place.why);
  return {.ports = share_of_ports(all, local),
          .why = fmt::format("an even part for each rank of the host ({})", why)};
}

}  // namespace gxp

// What ranks tell each other about their RDMA ports, and which of these join two ranks. Pure: it
// needs no libibverbs, so every build answers the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gxp {

// How ranks use RDMA; devices and gid_index may differ between hosts.
struct VerbsOptions {
  std::string devices{};  // "mlx5_0:1,mlx5_1": device and port; "": every active port
  int gid_index = -1;     // -1: the best of the port's table
  int pkey_index = 0;
  int traffic_class = 0;
  int queue_pairs = 1;    // per pair of ports
  double timeout_s = 60;  // of an operation: a peer that does not answer is given up well before
};

// The kinds of addresses that RDMA packets can be routed by, best first. Both ends of a connection
// need the same kind.
enum class GidKind : uint8_t { kIpv4, kIpv6, kLinkLocal };
inline constexpr size_t kGidKinds = 3;

struct VerbsGid {
  std::array<uint8_t, 16> bytes{};
  int32_t index = -1;  // in the port's table; -1: there is none of this kind
};

// The kind of an address; none for one that is all zero below its prefix.
std::optional<GidKind> kind_of_gid(const std::array<uint8_t, 16>& gid);
// "10.0.0.7", "fe80:0:0:0:..."
std::string to_string(const VerbsGid& gid);

// One active port. It travels as it lies in memory, between equal builds.
struct VerbsPort {
  std::array<char, 64> device{};  // ends with 0
  uint32_t port = 1;
  bool ethernet = true;  // RoCE; false: InfiniBand
  uint8_t mtu = 0;       // enum ibv_mtu
  uint16_t lid = 0;      // InfiniBand's
  uint32_t queue_pairs = 1;
  std::array<VerbsGid, kGidKinds> gids{};
};
static_assert(std::is_trivially_copyable_v<VerbsPort>);

// "mlx5_0 port 1"
std::string to_string(const VerbsPort& port);

// What one rank has: ports, or the reason why it has none to offer, as in "rank 3 ...": "has no
// RDMA device".
struct VerbsOffer {
  std::string obstacle{};
  std::vector<VerbsPort> ports{};  // in the order in which they are paired with a peer's
};

std::string to_bytes(const VerbsOffer& offer);
// kPeer: the bytes are no offer.
VerbsOffer parse_verbs_offer(std::string_view bytes);

// Two ports that reach each other: rail k of a pair of ranks.
struct VerbsRail {
  size_t mine = 0;  // index of the rank's own port
  size_t peers = 0;
  GidKind kind = GidKind::kIpv4;
};
inline constexpr size_t kMaxRails = 8;

// The k-th port of one with the k-th of the other, as far as both have them and speak the same;
// both ranks see the same rails.
std::vector<VerbsRail> rails_between(const VerbsOffer& mine, const VerbsOffer& peers);
// Connections over all rails.
size_t lanes_between(const VerbsOffer& mine, const VerbsOffer& peers);

// A rank's share of its host's ports: with more ports than ranks an even part of them, else one
// that some ranks share. The same local rank has the same rail on every host.
std::vector<VerbsPort> share_of_ports(const std::vector<VerbsPort>& all, int local_rank,
                                      int local_size);

}  // namespace gxp

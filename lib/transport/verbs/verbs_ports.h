// The facts that ranks exchange about their RDMA ports, and the choice of ports between two ranks.
// Pure: it needs no libibverbs, so every build answers the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lib/topo/model/gpu_direct.h"

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

// Which of its host's ports suit a rank by the wiring (topo/nccl/rank_ports.h), as the caller knows
// it.
struct VerbsPlace {
  std::vector<std::string> ports{};  // "mlx5_0:1", best first; empty: the wiring decides nothing
  std::string why{};                 // "nearest to GPU0: PIX", or why it decides nothing
  // If several ranks of a host have the same ports, they share them evenly; otherwise each uses all
  // of its ports.
  bool shares = false;
  // Of the rank's GPU and its first port; none: it computes on none.
  std::optional<GpuDirectFacts> gpu_direct{};
  // Whether what NICs have written must be flushed before the GPU reads it.
  bool needs_flush = true;
};

// How NICs reach the memory of a rank's GPU.
struct VerbsGpuDirect {
  GpuDirectMethod method = GpuDirectMethod::kNone;
  bool needs_flush = true;
  [[nodiscard]] bool is_on() const {
    return method == GpuDirectMethod::kDmaBuf || method == GpuDirectMethod::kPeerMemory;
  }
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

// One active port. It is sent in its memory layout, between equal builds.
struct VerbsPort {
  std::array<char, 64> device{};  // ends with 0
  uint32_t port = 1;
  bool ethernet = true;  // RoCE; false: InfiniBand
  uint8_t mtu = 0;       // enum ibv_mtu
  uint16_t lid = 0;      // InfiniBand's
  uint32_t queue_pairs = 1;
  bool takes_dma_buf = false;  // registers memory that another driver has exported
  std::array<VerbsGid, kGidKinds> gids{};
};
static_assert(std::is_trivially_copyable_v<VerbsPort>);

// "mlx5_0 port 1"
std::string to_string(const VerbsPort& port);
// Whether it is called so in a list of ports: "mlx5_0" or "mlx5_0:1".
bool is_named(const VerbsPort& port, std::string_view name);

// What one rank has: ports, or the reason why it has none to offer, as in "rank 3 ...": "has no
// RDMA device".
struct VerbsOffer {
  std::string obstacle{};
  std::vector<VerbsPort> ports{};  // in the order in which they are paired with a peer's
  std::string why{};               // these ports, and not others of the host
  VerbsGpuDirect gpu{};            // of its own; not sent to peers, which need not know it
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

// Ports of equal names, which most clusters have on the same network, by their names; then the k-th
// of those left over of one with the k-th of the other. Only ports that speak the same are paired.
// Both ranks see the same rails in the same order.
std::vector<VerbsRail> rails_between(const VerbsOffer& mine, const VerbsOffer& peers);
// Connections over all rails.
size_t lanes_between(const VerbsOffer& mine, const VerbsOffer& peers);

// The index of a rank among those of its host that share its ports.
struct VerbsSharer {
  int index = 0;
  int count = 1;
};

// An even part of the ports if there are more ports than sharers, else one that some share. The
// same local rank has the same rail on every host.
std::vector<VerbsPort> share_of_ports(const std::vector<VerbsPort>& all, const VerbsSharer& sharer);

// The rank's ports of `all`, the host's usable ones, and why: those of its place, or without any of
// these an even part. `alike`: among the ranks with the same place; `local`: among all of the host.
VerbsOffer place_on_ports(const std::vector<VerbsPort>& all, const VerbsPlace& place,
                          const VerbsSharer& alike, const VerbsSharer& local);

}  // namespace gxp

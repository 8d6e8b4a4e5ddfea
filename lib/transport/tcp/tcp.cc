#include "lib/transport/tcp/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/choice.h"
#include "lib/base/log.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/resolve.h"
#include "lib/net/socket/socket.h"
#include "lib/transport/stream/mesh.h"
#include "lib/transport/tcp/interfaces.h"
#include "lib/transport/tcp/sealed_stream.h"
#include "lib/transport/tcp/tcp_links.h"
#include "lib/transport/tcp/tcp_tuning.h"

namespace gxp {

namespace {

// Nothing is lost inside a host, and a congestion control that paces (BBR) halves the bandwidth. To
// be called before a connection exists: pacing does not end with the one that began it.
void avoid_pacing(int socket) {
  constexpr std::string_view kReno = "reno";
  (void)setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
}

// What is sent and not answered, TcpStream::look_for_silence() sees.
void set_up(int socket, Deadline::Duration silence) {
  const int on = 1;  // or the end of a message may wait 40 ms
  check_sys(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on),
            "set up a TCP connection");
  detect_silence(socket, silence);
}

// The local address of the interface that leads to `host`. Connecting a datagram socket sends
// nothing.
std::string address_towards(const std::string& host, Deadline deadline) {
  constexpr int kAnyPort = 9;
  std::string cause = "no route";
  for (const Address& address : resolve(host, kAnyPort, false, deadline, cause)) {
    const Fd probe(::socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (probe.valid() && ::connect(probe.get(), address.get(), address.length) == 0)
      return local_endpoint(probe.get()).host;
  }
  fail(ErrorKind::kPeer, "find a route to {}: {}", host, cause);
}

// The address by which the ranks of one host reach each other. A host may have IPv6 alone.
std::string loopback_address() {
  const Fd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const bool has_v4 = probe.valid() && ::bind(probe.get(), generic, sizeof address) == 0;
  return has_v4 ? "127.0.0.1" : "::1";
}

// Where this rank is reached.
struct OwnAddress {
  std::string host;
  bool is_ours = true;  // an address of this host; otherwise a name that leads here
};

OwnAddress own_address(const TransportContext& context) {
  const bool one_host = number_hosts(context.hosts).empty();
  if (!context.tcp.interface.empty()) {
    const auto interfaces = list_interfaces();
    const std::string towards = address_towards(context.master_addr, context.deadline);
    return {choose_interface(interfaces, context.tcp.interface, towards).address};
  }
  if (one_host) return {loopback_address()};
  if (context.host == context.hosts[0]) return {context.master_addr, false};
  return {address_towards(context.master_addr, context.deadline)};
}

Fd connect_peer(const std::string& address, std::string_view peer, Deadline deadline) {
  const Endpoint endpoint = parse_endpoint(address);
  return connect_tcp(endpoint, peer, deadline, is_loopback(endpoint.host) ? avoid_pacing : nullptr);
}

Fd connect_unpaced(const std::string& address, std::string_view peer, Deadline deadline) {
  return connect_tcp(parse_endpoint(address), peer, deadline, avoid_pacing);
}

// Also of ranks that would not say so by differing settings (lib/net/store/configuration.h).
void agree_on_protection(const TransportContext& context) {
  const std::string mine(Choice(context.tcp.protect));
  const auto all = context.store->gather("tcp protect", mine, context.deadline);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    fail(ErrorKind::kConfig,
         "protect TCP traffic: rank 0 has comm.protect = \"{}\", rank {} \"{}\"; give all ranks "
         "the same",
         all[0], rank, all[rank]);
  }
  if (context.rank != 0) return;
  const bool none = context.tcp.protect == Protection::kNone;
  const bool seen = context.tcp.protect == Protection::kAuthenticate;
  log_info("transport: payload over TCP: {}", none   ? "not protected"
                                              : seen ? "authenticated"
                                                     : "encrypted");
}

// A peer's store connection lives, and it listens before it tells its address.
std::string remedy(const TransportContext& context, const OwnAddress& own) {
  if (is_loopback(own.host)) return "";
  const PortRange& ports = context.tcp.ports;
  return fmt::format(
      "its rendezvous works, so a firewall may pass only that port: open {} between the hosts",
      ports == PortRange{}
          ? "all ports, or those of comm.port_range,"
          : fmt::format("the ports {}-{} (comm.port_range)", ports.first, ports.last));
}

std::vector<MeshConnection> connect_ranks(const TransportContext& context,
                                          const OwnAddress& address, const TcpConnections& wanted,
                                          const std::function<bool(int)>& joins) {
  MeshParts parts{.name = wanted.name,
                  .listener = {},
                  .address = "",
                  .connect = wanted.paced ? connect_peer : connect_unpaced,
                  .joins = joins,
                  .remedy = remedy(context, address)};
  bool any = false;
  for (int peer = 0; peer < context.world_size; ++peer) any |= peer != context.rank && joins(peer);
  if (any) {
    parts.listener =
        listen_tcp_within(context.tcp.ports, address.is_ours ? address.host : "", context.rank);
    if (!wanted.paced || is_loopback(address.host)) avoid_pacing(parts.listener.get());
    parts.address = to_string(Endpoint{address.host, local_endpoint(parts.listener.get()).port});
  }
  auto connections = connect_mesh_with_keys(context, std::move(parts));
  for (const MeshConnection& connection : connections) {
    if (connection.socket.valid()) set_up(connection.socket.get(), context.tcp.silence);
  }
  return connections;
}

}  // namespace

Reach tcp_reaches(const TransportContext& context, int a, int b) {
  const bool one_host = context.hosts[size_t(a)] == context.hosts[size_t(b)];
  if (one_host || !is_loopback(context.master_addr)) return {true, "works everywhere"};
  return {false,
          "are on different hosts, and MASTER_ADDR is a loopback address; set one that all reach"};
}

std::unique_ptr<LinkGroup> connect_tcp_links(const TransportContext& context,
                                             const JoinedPairs& joins) {
  agree_on_protection(context);
  const OwnAddress address = own_address(context);
  const ConnectTcp connect = [&](const TcpConnections& wanted,
                                 const std::function<bool(int)>& peers) {
    return connect_ranks(context, address, wanted, peers);
  };
  const TcpTunings tunings = tune_tcp(context, joins, connect);
  const auto tuning_for = [&](size_t peer) -> const TcpTuning& {
    return context.hosts[peer] == context.host ? tunings.inside : tunings.between;
  };
  std::vector<std::vector<MeshConnection>> of_peers(context.hosts.size());
  for (int i = 0; i < std::max(tunings.inside.connections, tunings.between.connections); ++i) {
    // Pairs on one host go along: for them pacing is never good.
    const TcpConnections wanted{fmt::format("tcp {}", i), tunings.between.paced};
    auto connections = connect(wanted, [&](int peer) {
      return joins(context.rank, peer) && i < tuning_for(size_t(peer)).connections;
    });
    for (size_t peer = 0; peer < connections.size(); ++peer) {
      const Fd& socket = connections[peer].socket;
      if (!socket.valid()) continue;
      set_buffers(socket.get(), tuning_for(peer).buffer_bytes);
      of_peers[peer].push_back(std::move(connections[peer]));
    }
  }
  auto common = std::make_unique<TcpCommon>();
  common->silence = context.tcp.silence;
  std::vector<TcpPeer> peers(of_peers.size());
  for (size_t peer = 0; peer < peers.size(); ++peer) {
    if (of_peers[peer].empty()) continue;
    peers[peer] = make_tcp_peer(std::move(of_peers[peer]), context, int(peer), *common);
  }
  return std::make_unique<TcpLinks>(std::move(peers), std::move(common));
}

}  // namespace gxp

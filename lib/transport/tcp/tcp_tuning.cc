#include "lib/transport/tcp/tcp_tuning.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/plural.h"
#include "lib/transport/peer_transport.h"
#include "lib/transport/tcp/sealed_stream.h"
#include "lib/transport/tcp/tcp_links.h"
#include "lib/transport/tcp/tcp_stream.h"

namespace gxp {

namespace {

constexpr std::array kConnections{1, 2, 4};
// In this order: a buffer that has once been set does not go back to the kernel.
constexpr std::array<size_t, 3> kBuffers{0, size_t{512} << 10, size_t{4} << 20};
// A tuning must beat those before it by this to be worth it; less is noise.
constexpr double kWorthIt = 1.15;
constexpr int kRepetitions = 7;
constexpr size_t kLeastBytes = size_t{128} << 10;
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr double kSeconds = 0.5e-3;  // that one exchange should take

// What the options leave open, the simplest first. Inside a host nothing is paced anyway.
std::vector<TcpTuning> candidates(const TcpOptions& options, bool on_one_host) {
  std::vector<TcpTuning> all;
  const auto add = [&](const TcpTuning& candidate) {
    if (std::find(all.begin(), all.end(), candidate) == all.end()) all.push_back(candidate);
  };
  for (const int tried : kConnections) {
    const int count = options.connections == 0 ? tried : options.connections;
    for (const size_t bytes : kBuffers) add({count, options.buffer_bytes.value_or(bytes), true});
    if (on_one_host) continue;
    for (const size_t bytes : kBuffers) add({count, options.buffer_bytes.value_or(bytes), false});
  }
  return all;
}

// Two ranks that try the candidates out.
struct Pair {
  int low = 0;
  int high = 0;
  [[nodiscard]] bool has(int rank) const { return rank == low || rank == high; }
  [[nodiscard]] int other(int rank) const { return rank == low ? high : low; }
};

// The first two ranks joined by TCP that share a host, or that do not.
std::optional<Pair> first_pair(const Hosts& hosts, const JoinedPairs& joins, bool on_one_host) {
  for (int high = 1; high < int(hosts.size()); ++high) {
    for (int low = 0; low < high; ++low) {
      const bool fits = (hosts[size_t(low)] == hosts[size_t(high)]) == on_one_host;
      if (fits && joins(low, high)) return Pair{low, high};
    }
  }
  return {};
}

// One end of a number of connections, as a transport uses them.
class Bundle {
 public:
  Bundle(const TransportContext& context, int peer, std::vector<MeshConnection> connections)
      : peer_(peer), deadline_(context.deadline) {
    auto common = std::make_unique<TcpCommon>();
    std::vector<TcpPeer> peers(size_t(context.world_size));
    peers[size_t(peer)] = make_tcp_peer(std::move(connections), context, peer, *common);
    stream_ = peers[size_t(peer)].sockets;
    PeerTransportParts parts{.name = "tcp",
                             .rank = context.rank,
                             .world_size = context.world_size,
                             .groups = {},
                             .hosts = {}};
    parts.groups.push_back(std::make_unique<TcpLinks>(std::move(peers), std::move(common)));
    transport_ = std::make_unique<PeerTransport>(std::move(parts));
  }

  void exchange(ConstMemory out, Memory in) {
    const Ticket receive = transport_->recv(peer_, 0, in);
    const Ticket send = transport_->send(peer_, 0, out);
    transport_->wait(receive, deadline_);
    transport_->wait(send, deadline_);
  }
  void set_all_buffers(size_t bytes) {
    for (size_t i = 0; i < stream_->connections(); ++i) set_buffers(stream_->socket(i), bytes);
  }
  // It is fast for the time of a probe, and stalls later.
  [[nodiscard]] bool uses_bbr() const {
    std::array<char, 16> name{};
    socklen_t size = name.size() - 1;
    return getsockopt(stream_->socket(0), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0 &&
           std::string_view(name.data()).starts_with("bbr");
  }

 private:
  int peer_;
  Deadline deadline_;
  TcpStream* stream_ = nullptr;
  std::unique_ptr<PeerTransport> transport_;
};

struct Result {
  TcpTuning tuning;
  double bytes_per_s = 0;
};

// The median time, in s, of a few exchanges; the first one only warms up. Not the best: paced
// connections are fast until they stall.
double measure(Bundle& bundle, ConstMemory out, Memory in) {
  std::array<double, kRepetitions> times{};
  bundle.exchange(out, in);
  for (double& time : times) {
    const auto start = Deadline::Clock::now();
    bundle.exchange(out, in);
    time = seconds_since(start);
  }
  std::ranges::nth_element(times, times.begin() + kRepetitions / 2);
  return times[kRepetitions / 2];
}

// What of a tuning is fixed when a connection is made.
struct ConnectionKind {
  int connections = 1;
  bool paced = true;
  explicit ConnectionKind(const TcpTuning& tuning)
      : connections(tuning.connections), paced(tuning.paced) {}
  auto operator<=>(const ConnectionKind&) const = default;
};
using Bundles = std::map<ConnectionKind, Bundle>;

// One for each kind of connections that a candidate has. All ranks call it; those that are not of
// the pair get none.
Bundles connect_bundles(const TransportContext& context, const Pair& pair,
                        const std::vector<TcpTuning>& tried, const ConnectTcp& connect) {
  const bool takes_part = pair.has(context.rank);
  const auto joins = [&](int peer) { return takes_part && pair.has(peer); };
  Bundles bundles;
  std::map<ConnectionKind, std::vector<MeshConnection>> sockets;
  for (const TcpTuning& candidate : tried) sockets[ConnectionKind(candidate)];
  for (auto& [kind, bundle] : sockets) {
    for (int i = 0; i < kind.connections; ++i) {
      const std::string name = fmt::format("tcp probe {}-{} {}{} {}", pair.low, pair.high,
                                           kind.connections, kind.paced ? "" : " reno", i);
      auto by_rank = connect({name, kind.paced}, joins);
      bundle.push_back(std::move(by_rank[size_t(pair.other(context.rank))]));
    }
    if (!takes_part) continue;
    bundles.try_emplace(kind, context, pair.other(context.rank), std::move(bundle));
  }
  return bundles;
}

// How much an exchange moves: what takes about kSeconds. The same at both ends.
size_t choose_bytes(Bundle& bundle, bool decides, Memory out, Memory in) {
  const double least = measure(bundle, out.slice(0, kLeastBytes), in.slice(0, kLeastBytes));
  const double fitting = double(kLeastBytes) * kSeconds / least;
  uint64_t mine = uint64_t(std::clamp(fitting, double(kLeastBytes), double(kMostBytes)));
  uint64_t theirs = 0;
  const auto bytes_of = [](uint64_t& value) {
    return Memory{reinterpret_cast<std::byte*>(&value), sizeof value, MemorySpace::kHost};
  };
  bundle.exchange(bytes_of(mine), bytes_of(theirs));
  return std::min(size_t(decides ? mine : theirs), kMostBytes);
}

Result try_out(Bundles& bundles, const std::vector<TcpTuning>& tried, bool decides) {
  std::vector<std::byte> out(kMostBytes);
  std::vector<std::byte> in(kMostBytes);
  const size_t bytes =
      choose_bytes(bundles.at(ConnectionKind(tried[0])), decides, memory_of(out), memory_of(in));
  std::vector<Result> results;
  for (const TcpTuning& candidate : tried) {
    Bundle& bundle = bundles.at(ConnectionKind(candidate));
    bundle.set_all_buffers(candidate.buffer_bytes);
    const double seconds =
        measure(bundle, memory_of(out).slice(0, bytes), memory_of(in).slice(0, bytes));
    results.push_back({candidate, double(bytes) / seconds});
  }
  if (bundles.at(ConnectionKind(tried[0])).uses_bbr())
    std::stable_partition(results.begin(), results.end(),
                          [](const Result& r) { return !r.tuning.paced; });
  Result best = results[0];
  for (const Result& result : results) {
    if (result.bytes_per_s > kWorthIt * best.bytes_per_s) best = result;
  }
  return best;
}

// The result travels as text through the store.
std::string to_text(const Result& result) {
  return fmt::format("{} {} {} {}", result.tuning.connections, result.tuning.buffer_bytes,
                     int(result.tuning.paced), result.bytes_per_s);
}

Result read_result(const std::string& text) {
  Result result;
  std::istringstream(text) >> result.tuning.connections >> result.tuning.buffer_bytes >>
      result.tuning.paced >> result.bytes_per_s;
  return result;
}

TcpTuning tune(const TransportContext& context, const JoinedPairs& joins, bool on_one_host,
               const ConnectTcp& connect) {
  const std::vector<TcpTuning> tried = candidates(context.tcp, on_one_host);
  const std::optional<Pair> pair = first_pair(context.hosts, joins, on_one_host);
  if (!pair || tried.size() == 1) return tried[0];
  const std::string key = fmt::format("tcp probe {}-{}", pair->low, pair->high);
  Bundles bundles = connect_bundles(context, *pair, tried, connect);
  if (!bundles.empty()) {
    const bool decides = context.rank == pair->low;
    const Result found = try_out(bundles, tried, decides);
    if (decides) context.store->set(key, to_text(found));
  }
  const Result result = read_result(context.store->get(key, context.deadline));
  if (context.rank != 0) return result.tuning;
  const size_t buffer = result.tuning.buffer_bytes;
  log_info(
      "transport: tcp {}: {} per pair, buffers {}{}: {:.2f} GB/s each way, the best "
      "of {} settings",
      on_one_host ? "inside a host" : "between hosts",
      counted(size_t(result.tuning.connections), "connection"),
      buffer == 0 ? "as the kernel sees fit" : "of " + format_bytes(buffer),
      result.tuning.paced ? "" : ", Reno", result.bytes_per_s / 1e9, tried.size());
  return result.tuning;
}

}  // namespace

TcpTunings tune_tcp(const TransportContext& context, const JoinedPairs& joins,
                    const ConnectTcp& connect) {
  TcpTunings tunings;
  tunings.inside = tune(context, joins, true, connect);
  tunings.between = tune(context, joins, false, connect);
  return tunings;
}

void set_buffers(int socket, size_t bytes) {
  if (bytes == 0) return;
  const int value = int(std::min<size_t>(bytes, std::numeric_limits<int>::max() / 2));
  for (const int option : {SO_SNDBUF, SO_RCVBUF}) {
    check_sys(setsockopt(socket, SOL_SOCKET, option, &value, sizeof value), "set a TCP buffer");
  }
}

}  // namespace gxp

#include "lib/transport/tcp/tcp_tuning.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/plural.h"
#include "lib/net/store/facts.h"
#include "lib/transport/peers/peer_transport.h"
#include "lib/transport/tcp/sealed_stream.h"
#include "lib/transport/tcp/tcp_links.h"
#include "lib/transport/tcp/tcp_stream.h"

namespace gxp {

namespace {

constexpr std::array kConnections{1, 2, 4};
// In this order: a buffer that has once been set does not go back to the OS.
constexpr std::array<size_t, 3> kBuffers{0, size_t{512} << 10, size_t{4} << 20};
// A tuning must beat those before it by this to be worth it; less is noise.
constexpr double kWorthIt = 1.15;
constexpr int kRepetitions = 7;
constexpr size_t kLeastBytes = size_t{128} << 10;
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr double kSeconds = 0.5e-3;  // that one exchange should take
// A first exchange of kLeastBytes that takes longer leaves things to the OS: on slow, lossy or long
// links a probe of some hundred exchanges would take minutes. In a data centre it takes some 0.1 ms.
constexpr double kSlowSeconds = 20e-3;
constexpr double kMostSeconds = 1;  // of a probe; then the best so far is taken

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
    common->silence = context.tcp.silence;
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
  [[nodiscard]] std::string question() const { return question_about(stream_->socket(0)); }
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
  size_t tried = 0;  // settings
  auto fields() {
    return std::tie(tuning.connections, tuning.buffer_bytes, tuning.paced, bytes_per_s, tried);
  }
};

// The time of a probe. Both ends of a pair stop at once: the first byte of what the deciding end
// sends says whether the probe has taken too long.
struct ProbeTime {
  bool decides = false;  // this end
  Deadline::Clock::time_point start = Deadline::Clock::now();
  [[nodiscard]] std::byte late() const { return std::byte(seconds_since(start) > kMostSeconds); }
};

// The median time, in s, of a few exchanges; the first one only warms up. Not the best: paced
// connections are fast until they stall. Nothing once the probe has taken too long.
std::optional<double> measure(Bundle& bundle, const ProbeTime& probe, Memory out, Memory in) {
  std::array<double, 1 + kRepetitions> times{};
  for (double& time : times) {
    out.data[0] = probe.late();
    const auto start = Deadline::Clock::now();
    bundle.exchange(out, in);
    time = seconds_since(start);
    if ((probe.decides ? out : in).data[0] != std::byte{0}) return std::nullopt;
  }
  const auto median = times.begin() + 1 + kRepetitions / 2;
  std::nth_element(times.begin() + 1, median, times.end());
  return *median;
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

// The deciding end's number, at both ends.
uint64_t agree(Bundle& bundle, bool decides, uint64_t mine) {
  uint64_t theirs = 0;
  const auto bytes_of = [](uint64_t& value) {
    return Memory{reinterpret_cast<std::byte*>(&value), sizeof value, MemorySpace::kHost};
  };
  bundle.exchange(bytes_of(mine), bytes_of(theirs));
  return decides ? mine : theirs;
}

// How long the slowest of the first exchanges over a connection takes, in s: a lossy link may be lucky
// once. Before them only small packets have passed.
double first_exchange(Bundle& bundle) {
  constexpr int kFirst = 3;
  std::vector<std::byte> out(kLeastBytes), in(kLeastBytes);
  double slowest = 0;
  try {
    for (int i = 0; i < kFirst; ++i) {
      const auto start = Deadline::Clock::now();
      bundle.exchange(memory_of(out), memory_of(in));
      slowest = std::max(slowest, seconds_since(start));
    }
  } catch (const Tampered&) {
    throw;
  } catch (const Error& error) {
    const std::string question = bundle.question();
    if (question.empty() || std::string_view(error.what()).ends_with(question)) throw;
    fail(error.kind(), "{}{}", error.what(), question);
  }
  return slowest;
}

// How much an exchange moves: what takes about kSeconds. The same at both ends.
size_t choose_bytes(Bundle& bundle, const ProbeTime& probe, Memory out, Memory in) {
  const auto least = measure(bundle, probe, out.slice(0, kLeastBytes), in.slice(0, kLeastBytes));
  if (!least) return kLeastBytes;
  const double fitting = double(kLeastBytes) * kSeconds / *least;
  const auto mine = uint64_t(std::clamp(fitting, double(kLeastBytes), double(kMostBytes)));
  return std::min(size_t(agree(bundle, probe.decides, mine)), kMostBytes);
}

Result try_out(Bundles& bundles, const std::vector<TcpTuning>& tried, const ProbeTime& probe) {
  std::vector<std::byte> out(kMostBytes);
  std::vector<std::byte> in(kMostBytes);
  Bundle& first = bundles.at(ConnectionKind(tried[0]));
  const size_t bytes = choose_bytes(first, probe, memory_of(out), memory_of(in));
  std::vector<Result> results;
  for (const TcpTuning& candidate : tried) {
    Bundle& bundle = bundles.at(ConnectionKind(candidate));
    bundle.set_all_buffers(candidate.buffer_bytes);
    const auto seconds =
        measure(bundle, probe, memory_of(out).slice(0, bytes), memory_of(in).slice(0, bytes));
    if (!seconds) break;
    results.push_back({candidate, double(bytes) / *seconds});
  }
  if (results.empty()) return {.tuning = tried[0]};
  if (first.uses_bbr())
    std::stable_partition(results.begin(), results.end(),
                          [](const Result& r) { return !r.tuning.paced; });
  Result best = results[0];
  for (const Result& result : results) {
    if (result.bytes_per_s > kWorthIt * best.bytes_per_s) best = result;
  }
  best.tried = results.size();
  return best;
}

const char* where(bool on_one_host) { return on_one_host ? "inside a host" : "between hosts"; }
std::string connections_of(const TcpTuning& tuning) {
  return counted(size_t(tuning.connections), "connection");
}
std::string buffers_of(const TcpTuning& tuning) {
  return tuning.buffer_bytes == 0 ? "sized by the OS" : "of " + format_bytes(tuning.buffer_bytes);
}

void log_slow_link(bool on_one_host, double seconds, const TcpTuning& tuning) {
  log_info(
      "transport: tcp {}: {:.0f} ms for {} each way, too slow to tune; {} per pair, buffers {}",
      where(on_one_host), seconds * 1e3, format_bytes(kLeastBytes), connections_of(tuning),
      buffers_of(tuning));
}

void log_best(bool on_one_host, const Result& best) {
  if (best.tried == 0)
    return log_info("transport: tcp {}: link too slow to tune", where(on_one_host));
  log_info(
      "transport: tcp {}: {} per pair, buffers {}{}: {:.2f} GB/s each way, the best "
      "of {} settings",
      where(on_one_host), connections_of(best.tuning), buffers_of(best.tuning),
      best.tuning.paced ? "" : ", Reno", best.bytes_per_s / 1e9, best.tried);
}

// A value that the deciding rank broadcasts to all.
template <class Value>
struct BroadcastValue {
  Value value{};
  auto fields() { return std::tie(value); }
};

// One class of pairs, of which the first pair tries the candidates out for all. Every rank has one
// and calls run(); those that are not of the pair only learn what it finds.
class TcpProbe {
 public:
  TcpProbe(const TransportContext& context, const Pair& pair, const ConnectTcp& connect)
      : context_(context),
        pair_(pair),
        connect_(connect),
        key_(fmt::format("tcp probe {}-{}", pair.low, pair.high)),
        takes_part_(pair.has(context.rank)),
        decides_(context.rank == pair.low) {}

  TcpTuning run(const std::vector<TcpTuning>& tried, bool on_one_host) {
    connect_kind(tried[0]);
    const double seconds =
        share<BroadcastValue<double>>(key_ + " first", [&] {
          return BroadcastValue<double>{first_exchange(bundles_.begin()->second)};
        }).value;
    if (seconds > kSlowSeconds) {
      if (context_.rank == 0) log_slow_link(on_one_host, seconds, tried[0]);
      return tried[0];
    }
    const ProbeTime probe{.decides = decides_};
    const std::vector<TcpTuning> reached = connect_kinds(tried, probe);
    const auto result = share<Result>(key_, [&] { return try_out(bundles_, reached, probe); });
    if (context_.rank == 0) log_best(on_one_host, result);
    return result.tuning;
  }

 private:
  // Makes the candidate's kind of connections between the pair, unless there are some.
  void connect_kind(const TcpTuning& candidate) {
    const ConnectionKind kind(candidate);
    if (!known_.insert(kind).second) return;
    const auto joins = [&](int peer) { return takes_part_ && pair_.has(peer); };
    std::vector<MeshConnection> sockets;
    for (int i = 0; i < kind.connections; ++i) {
      const std::string name =
          fmt::format("{} {}{} {}", key_, kind.connections, kind.paced ? "" : " reno", i);
      auto by_rank = connect_({name, kind.paced}, joins);
      sockets.push_back(std::move(by_rank[size_t(pair_.other(context_.rank))]));
    }
    if (takes_part_)
      bundles_.try_emplace(kind, context_, pair_.other(context_.rank), std::move(sockets));
  }

  // Returns the candidates that are connected before the probe has taken too long.
  std::vector<TcpTuning> connect_kinds(const std::vector<TcpTuning>& tried,
                                       const ProbeTime& probe) {
    std::vector<TcpTuning> reached;
    for (const TcpTuning& candidate : tried) {
      const auto in_time = [&] { return BroadcastValue<bool>{probe.late() == std::byte{0}}; };
      if (!known_.contains(ConnectionKind(candidate)) &&
          !share<BroadcastValue<bool>>(fmt::format("{} {}", key_, reached.size()), in_time).value)
        break;
      connect_kind(candidate);
      reached.push_back(candidate);
    }
    return reached;
  }

  // What both ends find, as the deciding end tells it to all ranks.
  template <class Fact, class Find>
  Fact share(const std::string& key, const Find& find) {
    if (takes_part_) {
      const Fact found = find();
      if (decides_) context_.store->set(key, pack_fact(found));
    }
    return unpack_fact<Fact>(context_.store->get(key, context_.deadline, pair_.low));
  }

  const TransportContext& context_;
  const Pair pair_;
  const ConnectTcp& connect_;
  const std::string key_;  // of the store
  const bool takes_part_;
  const bool decides_;
  std::set<ConnectionKind> known_;  // the kinds that there are, on all ranks
  Bundles bundles_;                 // of them, at the ends of the pair
};

TcpTuning tune(const TransportContext& context, const JoinedPairs& joins, bool on_one_host,
               const ConnectTcp& connect) {
  const std::vector<TcpTuning> tried = candidates(context.tcp, on_one_host);
  const std::optional<Pair> pair = first_pair(context.hosts, joins, on_one_host);
  if (!pair || tried.size() == 1) return tried[0];
  return TcpProbe(context, *pair, connect).run(tried, on_one_host);
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

// Ranks as threads over any transport, with a real store on loopback.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/log.h"
#include "lib/net/store/store.h"
#include "lib/net/store/store_server.h"
#include "lib/transport/peers/inproc.h"
#include "lib/transport/table/table.h"
#include "lib/transport/verbs/verbs_context.h"
#include "lib/transport/verbs/verbs_find.h"
#include "tests/catch.h"
#include "tests/transport/fake_verbs/fake_verbs.h"

namespace gxp {

// What a wait has that is to end before: a bound for machines as busy as they may be.
inline constexpr std::chrono::seconds kSoon{20};
inline Deadline soon() { return Deadline::after(kSoon); }

// A way to make a world of ranks that every conformance test runs over.
struct WorldKind {
  std::string name;
  std::string transport;  // as make_transport() takes it; "" for an InprocWorld
  void (*adapt)(TransportContext&) = nullptr;  // what is special, on each rank
  int least_ranks = 1;                         // fewer would not be joined by what it stands for
};

// The worlds that have something special. A row of the table needs a line here only if it does.
inline std::vector<WorldKind> special_worlds() {
  return {
      {"inproc", ""},
      {"shm mapped", "shm", [](TransportContext& context) { context.use_cma = false; }},
      {"tcp", "tcp", [](TransportContext& context) { context.tcp.protect = Protection::kNone; }},
      {"tcp encrypted", "tcp",
       [](TransportContext& context) { context.tcp.protect = Protection::kEncrypt; }},
      // Authenticated, over three connections per pair with stripes that cut everything.
      {"tcp x3", "tcp",
       [](TransportContext& context) {
         context.tcp = {.connections = 3, .buffer_bytes = 0, .stripe_bytes = 1001};
       }},
      // The ranks are on two hosts, the first half on one, or so they say.
      {"shm+tcp", "auto",
       [](TransportContext& context) {
         context.master_addr =
             "0.0.0.0";  // leads to this host on Linux, and is no loopback address
         context.host = 2 * context.rank < context.world_size ? "near" : "far";
       },
       3},
      {"verbs", "verbs",
       [](TransportContext& context) { context.tcp.protect = Protection::kNone; }},
      // Ranks that each have a host's ports to themselves, with two connections over each.
      {"verbs rails", "verbs",
       [](TransportContext& context) {
         context.tcp.protect = Protection::kNone;
         context.host = fmt::format("host {}", context.rank);
         change_verbs(context).options.queue_pairs = 2;
       }},
      {"shm+verbs", "auto",
       [](TransportContext& context) {
         context.tcp.protect = Protection::kNone;
         context.host = 2 * context.rank < context.world_size ? "near" : "far";
       },
       3},
  };
}

// Whether this machine can have such a world at all; if not, says why.
inline bool is_here(const WorldKind& kind) {
  if (!contains(kind.name, "verbs")) return true;
  static const bool has_verbs = [] {
    const VerbsOffer offer = find_verbs_ports({});
    if (offer.ports.empty())
      fmt::print(stderr, "no worlds over verbs: this host {}\n", offer.obstacle);
    return !offer.ports.empty();
  }();
  return has_verbs;
}

// The rows of the table that this machine can have.
inline std::vector<std::string> rows_here() {
  std::vector<std::string> names;
  for (const TransportRow& row : transport_rows()) {
    const std::string name(row.name);
    if (is_here({name, name})) names.push_back(name);
  }
  return names;
}

// The special ones, and one for each row of the table that has none of its name.
inline std::vector<WorldKind> world_kinds() {
  std::vector<WorldKind> kinds = special_worlds();
  for (const std::string& row : rows_here()) {
    if (std::ranges::find(kinds, row, &WorldKind::name) == kinds.end()) kinds.push_back({row, row});
  }
  // In the machine of tests/rdma-vm only RDMA is of interest.
  const bool only_verbs = std::getenv("GXP_TEST_RDMA") != nullptr;
  std::erase_if(kinds, [&](const WorldKind& kind) {
    return !is_here(kind) || (only_verbs && !contains(kind.name, "verbs"));
  });
  return kinds;
}

// The names of those that join so many ranks; without inproc those that send what fits before it
// is asked for.
inline std::vector<std::string> worlds_of(int ranks, bool with_inproc = true) {
  std::vector<std::string> names;
  for (const WorldKind& kind : world_kinds()) {
    const bool wanted = with_inproc || !kind.transport.empty();
    if (wanted && kind.least_ranks <= ranks) names.push_back(kind.name);
  }
  return names;
}

// Those of the names whose ranks may be processes: the fake of libibverbs joins threads.
inline std::vector<std::string> of_processes(std::vector<std::string> names) {
  const bool fake = fake_verbs() != nullptr;
  std::erase_if(names, [&](const std::string& name) { return fake && contains(name, "verbs"); });
  return names;
}

// The rows of the table as they are, and these special ones: for tests of what runs over a
// transport.
inline std::vector<std::string> rows_and(std::vector<std::string> names) {
  for (std::string& row : rows_here()) names.push_back(std::move(row));
  return names;
}

// The kind called `name`; any other name that make_transport() takes means just that.
inline WorldKind world_kind(const std::string& name) {
  for (WorldKind& kind : world_kinds()) {
    if (kind.name == name) return kind;
  }
  return {name, name};
}

// A world of a kind. Must outlive its members.
class World {
 public:
  // `first` runs before this process has a second thread, so it may fork; ranks may join from
  // there.
  World(const std::string& kind, int world_size, const std::function<void(World&)>& first = {})
      : kind_(world_kind(kind)),
        world_size_(world_size),
        secret_(Secret::generate()),
        inproc_(world_size) {
    set_log_level(LogLevel::kWarn);
    Fd listener = listen_tcp({"127.0.0.1", 0});
    server_endpoint_ = local_endpoint(listener.get());
    if (first) first(*this);
    server_ = std::make_unique<StoreServer>(std::move(listener), world_size, secret_);
  }

  [[nodiscard]] int world_size() const { return world_size_; }
  [[nodiscard]] const Secret& secret() const { return secret_; }
  [[nodiscard]] StoreServer& server() { return *server_; }
  [[nodiscard]] std::unique_ptr<Store> join_store(int rank) const {
    return std::make_unique<Store>(server_endpoint_, rank, world_size_, secret_, soon());
  }
  [[nodiscard]] TransportContext context(Store& store) const {
    TransportContext context{.rank = store.rank(),
                             .world_size = world_size_,
                             .store = &store,
                             .secret = &secret_,
                             .deadline = soon(),
                             .tcp = {.connections = 1, .buffer_bytes = 0}};
    if (kind_.adapt != nullptr) kind_.adapt(context);
    return context;
  }
  std::unique_ptr<Transport> join(Store& store) {
    if (kind_.transport.empty()) return inproc_.make_transport(store.rank());
    return make_transport(kind_.transport, context(store));
  }

 private:
  WorldKind kind_;
  int world_size_;
  Secret secret_;
  InprocWorld inproc_;
  Endpoint server_endpoint_;
  std::unique_ptr<StoreServer> server_;
};

// Runs body(rank) for all ranks at the same time; what they threw, "" for nothing, by rank.
inline std::vector<std::string> run_all(int world_size, const std::function<void(int)>& body) {
  std::vector<std::future<std::string>> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&body, rank]() -> std::string {
      try {
        body(rank);
        return "";
      } catch (const Error& error) {
        return error.kind() == ErrorKind::kPeer ? error.what()
                                                : "not kPeer: " + std::string(error.what());
      }
    }));
  }
  std::vector<std::string> errors;
  for (auto& rank : ranks) errors.push_back(rank.get());
  return errors;
}

// body(transport) on every rank; a rank that throws reports nothing to the store but its end.
inline std::vector<std::string> run_over(World& world,
                                         const std::function<void(Transport&)>& body) {
  return run_all(world.world_size(), [&](int rank) {
    const auto store = world.join_store(rank);
    {
      const auto transport = world.join(*store);
      body(*transport);
      store->barrier("end", soon());
    }
    store->close();
  });
}

inline std::vector<std::string> run_over(const std::string& name, int world_size,
                                         const std::function<void(Transport&)>& body) {
  World world(name, world_size);
  return run_over(world, body);
}

// What `from` sends to `to` in its message number `message`.
inline std::vector<std::byte> payload(size_t bytes, int from, int to, int message = 0) {
  std::vector<std::byte> data(bytes);
  uint32_t state = uint32_t(from * 1000 + to * 100 + message + 1);
  for (std::byte& byte : data) {
    state = state * 1664525 + 1013904223;
    byte = std::byte(state >> 24);
  }
  return data;
}

}  // namespace gxp

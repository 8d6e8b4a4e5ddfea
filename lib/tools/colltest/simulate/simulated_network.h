// The network of a simulation: links, routes between ranks, and the costs of messages and
// arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "lib/collective/tune/profile.h"
#include "lib/tools/topology/model/cluster.h"

namespace gxp {

// Packets on links, on a virtual clock. A packet is what travels as one: a segment of a message, or
// several segments in a row.
//
// A link serves packets one after the other, in the order in which their heads reach it, each for
// `work * seconds_per_unit`. Packets cut through: the head goes on to the next link while the tail
// still comes, so a packet that meets no other takes the sum of the latencies and the time of its
// slowest link. Queues have no limit. Concurrent messages share a link fairly to within a packet,
// and no link idles while a packet waits for it. Why not max-min fair rates: each message that
// starts or ends then changes the rates of all that it meets, directly or not, which on a cluster
// with a shared spine is all of them: O(messages) for each event instead of O(log messages). Both
// end at the same time what shares one link.
struct SimulatedLink {
  double seconds_per_unit = 0;
  double latency_s = 0;
  // Not a link but another resource of packets, such as cores: it serves Packet::shared_work, and
  // the tail waits for that, but the head does not.
  bool is_pool = false;
  bool follows = false;  // as ClusterLink::follows: entered without an event of its own
};

struct Packet {
  int from = 0;
  int to = 0;
  uint32_t message = 0;   // the sender's number of it
  uint32_t segments = 0;  // that it holds
  uint64_t bytes = 0;
  double work = 0;         // in the links' unit
  double shared_work = 0;  // of pools
};

class LinkSimulation {
 public:
  explicit LinkSimulation(std::vector<SimulatedLink> links);

  // Starts at `time`, no earlier than the last arrival; for one sender, times never fall.
  void send(double time, const Packet& packet, std::span<const uint32_t> route);

  struct Arrival {
    double time = 0;  // of the last byte
    Packet packet;
  };
  // The earliest arrival; of several at the same time, always the same one. Nothing if no packet is
  // under way.
  std::optional<Arrival> next();

  struct Load {
    uint64_t bytes = 0;
    double busy_s = 0;
  };
  [[nodiscard]] const std::vector<Load>& loads() const { return loads_; }  // by link
  [[nodiscard]] uint64_t events() const { return events_; }

 private:
  struct Moving {
    Packet packet;
    double tail = 0;  // when the last byte reaches the next link
    uint8_t hop = 0;
    uint8_t hops = 0;
    Cluster::Route route{};
  };
  // A head that reaches a link, or the tail that arrives. Order: time, then order of creation.
  struct Event {
    double time;
    uint64_t key;  // number of the event, then kSlotBits of index into moving_
    bool operator>(const Event& other) const {
      return time > other.time || (time == other.time && key > other.key);
    }
  };
  static constexpr int kSlotBits = 22;  // 4 million packets under way, about 2 GB; 4e12 events

  void travel(uint32_t slot, double head);
  void push(double time, uint32_t slot);

  std::vector<SimulatedLink> links_;
  std::vector<double> free_at_;  // by link
  std::vector<Load> loads_;
  std::vector<Moving> moving_;
  std::vector<uint32_t> free_slots_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_due_;
  uint64_t events_ = 0;
};

class SimulatedNetwork {
 public:
  virtual ~SimulatedNetwork() = default;
  [[nodiscard]] virtual std::vector<SimulatedLink> links() const = 0;
  [[nodiscard]] virtual std::string name_of(uint32_t link) const = 0;
  // The number of links from rank to rank; the first entries of `route` are they.
  virtual size_t route(int from, int to, Cluster::Route& route) const = 0;
  // Sets work and shared_work of a packet whose other members are set.
  virtual void set_work(Packet& packet) const = 0;
  [[nodiscard]] virtual double fold_seconds(uint64_t bytes) const = 0;
  [[nodiscard]] virtual double copy_seconds(uint64_t bytes) const = 0;
  // For each segment, of its sender and of its receiver.
  [[nodiscard]] virtual double overhead_seconds() const = 0;
  // Whether segments travel apart. Otherwise their pipelining is part of the costs.
  [[nodiscard]] virtual bool has_segments() const = 0;
};

// Borrows both. Each rank has its own GPU.
std::unique_ptr<SimulatedNetwork> make_cluster_network(const Cluster& cluster,
                                                       std::span<const int> gpu_of_rank);

// No graph: what a profile (profile.h) measured on the ranks of one host, and between hosts.
struct FlatLinks {
  const LinkClass& inside;             // of as many ranks as a host has
  const LinkClass* between = nullptr;  // null: there is one host
  double inside_scale = 1;             // times what was measured, where more ranks share a core
};

// A message of m bytes within a host takes hop(m) of the sender's port and of the receiver's, and
// exchange(m) / ranks of the host's cores; between hosts it takes exchange(m) of both hosts' ports.
// Ports and cores are links for which messages queue; when all ranks send and receive at once, that
// takes exchange(m). Folding and copying take fold(m) and copy(m). The cost per byte is at least
// that of the whole buffer: a small part of a large buffer does not come from a cache. Borrows
// shape.hosts and the links.
std::unique_ptr<SimulatedNetwork> make_flat_network(const CallShape& shape, uint64_t buffer_bytes,
                                                    const FlatLinks& links);

}  // namespace gxp

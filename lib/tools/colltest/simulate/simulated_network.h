// The network of a simulation: links, routes between ranks, and the costs of messages and
// arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/collective/tune/profile.h"
#include "lib/tools/colltest/simulate/link_simulation.h"
#include "lib/tools/topology/model/cluster.h"

namespace gxp {

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

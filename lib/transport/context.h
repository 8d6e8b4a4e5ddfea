// What a rank must know to make a transport.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/device/device.h"
#include "lib/net/socket/seal.h"
#include "lib/net/socket/secret.h"
#include "lib/net/socket/socket.h"
#include "lib/net/store/store.h"

namespace gxp {

// The same for all processes that can share memory and local sockets: one boot of one OS and
// one network namespace. Containers of one host differ unless they share the namespace.
std::string host_identity();

// The hosts of all ranks, by rank.
using Hosts = std::vector<std::string>;
// The same as Transport::hosts() has them: numbers from 0 in order of appearance; empty: one host.
std::vector<int> number_hosts(const Hosts& hosts);
// The same for hosts with arbitrary numbers.
std::vector<int> number_hosts(std::span<const int> hosts);

// How ranks talk TCP; the same on all ranks but for the interface.
struct TcpOptions {
  int connections = 0;  // per peer; 0: a probe decides
  // Each socket's, each way; 0: as the OS sees fit; none: a probe decides.
  std::optional<size_t> buffer_bytes{};
  // Messages longer than this are cut over several connections, if there are several.
  size_t stripe_bytes = size_t{128} << 10;
  // The protection of all bytes between ranks (sealed_stream.h), including those of the probe.
  Protection protect = Protection::kAuthenticate;
  // Where this host is reached (interfaces.h); empty: on the interface that reaches rank 0.
  std::string interface {};
  PortRange ports{};  // to listen on; none: any
  // The time after which a host that answers nothing, not even repeated packets, counts as lost.
  Deadline::Duration silence = std::chrono::seconds(60);
};

// The memory that a rank can share with the others of its host.
struct ShmOffer {
  size_t arena_bytes = 0;  // of each rank's segment (shared_arena.h); 0: none can be shared
  std::string obstacle{};  // what follows "ranks 0 and 1": "cannot share memory: ..."
  auto fields() { return std::tie(arena_bytes, obstacle); }
};

struct VerbsContext;  // lib/transport/verbs/verbs_context.h

// Everything pointed to outlives the transport.
struct TransportContext {
  int rank = 0;
  int world_size = 1;
  Store* store = nullptr;
  const Secret* secret = nullptr;
  Deadline deadline;  // of the whole set-up
  // Where rank 0's store is. Other hosts reach rank 0's host at this address, and each host listens
  // on the interface that routes to it, unless tcp.interface says otherwise.
  std::string master_addr = "127.0.0.1";
  std::string host = host_identity();
  TcpOptions tcp{};
  // The device whose memory messages may use if RDMA can access it; null: host memory only.
  Device* gpu = nullptr;
  bool use_cma = true;          // cross_memory_attach.h
  Hosts hosts{};                // of all ranks; make_transport() gathers them
  int host_cpus = 0;            // that the ranks of this host have together; 0: as many as this one
  std::vector<ShmOffer> shm{};  // of all ranks, equal within a host; survey_shm() gathers them
  std::shared_ptr<const VerbsContext> verbs{};  // null: as by default
};

// Tells whether two ranks are joined in some way; the same on every rank.
using JoinedPairs = std::function<bool(int a, int b)>;

// How many CPUs the ranks of this host have together, of those that `cpus_of_ranks` names:
// cpus_of_this_rank() of each.
std::string cpus_of_this_rank();
int count_cpus(const std::vector<std::string>& cpus_of_ranks, const Hosts& hosts,
               const std::string& host);
// Whether the ranks of this host outnumber its CPUs.
bool is_oversubscribed(const TransportContext& context);

}  // namespace gxp

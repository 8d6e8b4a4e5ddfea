// What a source of topologies tells: hosts, the hardware within them, and the switches between
// them. One host is the simple case: one tree, one host, no switch.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/channel_graphs.h"

namespace gxp {

inline constexpr size_t kNoTree = ~size_t{0};
inline constexpr size_t kNoSwitch = ~size_t{0};

struct TopologyHost {
  std::string name;
  size_t tree = kNoTree;         // index into Topology::trees, which hosts that are alike share
  std::vector<size_t> leaves{};  // indices of the switches that it is joined to; with rails several
};

// A switch, or a set of hosts that are near each other (Slurm's block).
struct NetworkSwitch {
  std::string name;
  size_t above = kNoSwitch;
  double uplink_gb_per_s = 0;  // each way, of all cables to the one above; 0: unknown
  bool is_block = false;
};

struct Topology {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // as fuzzers have it: limits are met in short time
  static constexpr size_t kMaxHosts = 1u << 8;
#else
  static constexpr size_t kMaxHosts = 1u << 16;
#endif
  static constexpr size_t kMaxSwitches = kMaxHosts;

  std::string name;    // the file or name that was asked for
  std::string source;  // "NCCL topology XML, version 1"
  std::vector<HostTree> trees{};
  std::vector<TopologyHost> hosts{};
  std::vector<NetworkSwitch> switches{};
  std::vector<ChannelGraph> channel_graphs{};  // of a source that tells orders of GPUs alone
  // About the whole; the notes of a host are in its tree.
  std::vector<std::string> notes{};
};

// That of one host.
Topology topology_of(HostTree host);

}  // namespace gxp

// A topology as its source describes it: hosts, the hardware within them, and the switches between
// them. One host is the simple case: one tree, one host, no switch.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lib/tools/topology/read/channel_graphs.h"

namespace gxp {

class HostTree;

inline constexpr size_t kNoTree = ~size_t{0};
inline constexpr size_t kNoSwitch = ~size_t{0};

struct TopologyHost {
  std::string name;
  size_t tree = kNoTree;         // index into Topology::trees; equal hosts share one
  std::vector<size_t> leaves{};  // indices of its switches; several with rails
};

// A switch, or a set of hosts that are near each other (Slurm's block).
struct NetworkSwitch {
  std::string name;
  size_t above = kNoSwitch;
  double uplink_gb_per_s = 0;  // each way, of all cables to the one above; 0: unknown
  bool is_block = false;
};

struct Topology {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // for fuzzers, which then reach the limits soon
  static constexpr size_t kMaxHosts = 1u << 8;
#else
  static constexpr size_t kMaxHosts = 1u << 16;
#endif
  static constexpr size_t kMaxSwitches = kMaxHosts;

  std::string name;                                // the file or name that was asked for
  std::string source;                              // "NCCL topology XML, version 1"
  std::vector<std::shared_ptr<HostTree>> trees{};  // none is null; copies share them
  std::vector<TopologyHost> hosts{};
  std::vector<NetworkSwitch> switches{};
  std::vector<ChannelGraph> channel_graphs{};  // from a source of rings and trees alone
  // About the whole; the notes of a host are in its tree.
  std::vector<std::string> notes{};
};

// The topology of one host.
Topology topology_of(HostTree host);

}  // namespace gxp

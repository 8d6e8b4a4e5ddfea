// Slurm's topology.conf, or what scontrol show topology prints of it: the switches of a cluster and
// the nodes below them (topology/tree), or blocks of nodes (topology/block).
//
// The reader supports SwitchName, Switches, Nodes, LinkSpeed; BlockName, BlockSizes; comments,
// lines that go on after a backslash, keys in any case, host lists such as "rack[1-2]n[01-18]".
// Notes name other keys, each once, and switches without a line of their own or with two switches
// above. The inside of a node is not known.
//   Limits  Topology::kMaxHosts, kMaxSwitches; kMaxSlurmLevels; 2^18 names in all.
//   Errors  kCorrupt, "read topology FILE:LINE:COLUMN: ...".
// Source: topology.conf(5) of Slurm 24.05.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

struct Topology;

inline constexpr int kMaxSlurmLevels = 32;  // of switches

// Whether its first line that says anything is about switches or blocks.
bool looks_like_slurm_topology(std::string_view text);
Topology read_slurm_topology(std::string_view text, const std::string& name);

}  // namespace gxp

// The sources of topologies: one table, and the lookup of the user's argument.
//
// One more source is a row in sources.cc and a file that makes a HostTree or a Topology.
//   Errors  kIo: unreadable or missing. kUsage: no known name. kCorrupt: of no known kind, or its
//           reader's error, with file, line and column. kUnavailable: a live host that cannot be
//           examined.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/topo/read/system_root.h"

namespace gxp {

class HostTree;
struct Topology;

inline constexpr size_t kMaxSourceBytes = 64u << 20;

enum class SourceForm { kName, kFile, kDirectory };

// The user's name of a topology, and what was found there.
struct SourceInput {
  std::string name;  // "live", "ring:8", or a path
  SourceForm form = SourceForm::kName;
  std::string text{};  // a file's whole content
};

struct TopologySource {
  std::string_view name;     // "nccl-xml"
  std::string_view summary;  // for lists
  std::string_view mark;     // by which users recognise it, for messages
  bool (*recognises)(const SourceInput& input);
  Topology (*load)(const SourceInput& input);
};

// In the order in which they are asked.
std::span<const TopologySource> topology_sources();

// Reads the file that the user named, in `folder` if one is given; otherwise "-" is standard input.
// Names come before files: "./ring:8" is a file. The content decides the kind of a file.
SourceInput look_at_source(const std::string& what, const std::string& folder = "");
Topology load_topology(const SourceInput& input);
Topology load_topology(const std::string& what);
// Whether it is text of NCCL's or RCCL's topology XML, sound or not.
bool is_nccl_xml(const SourceInput& input);
// Whether it is a cluster TOML, likewise.
bool is_cluster_toml(const SourceInput& input);
// One host of load_topology(): the first, if there are several kinds of hosts, with a note.
// kCorrupt: the hosts' devices are unknown.
HostTree load_host(const SourceInput& input);
HostTree load_host(const std::string& what);
// A host by /proc and /sys (sysfs_host.h) as hwloc-gather-topology recorded them in a directory. A
// recording lacks what only a driver knows: the GPUs' numbers, memory and NVLinks. `path` is for
// its name where the recording has none.
HostTree read_recorded_root(const SystemRoot& root, const std::string& path);

}  // namespace gxp

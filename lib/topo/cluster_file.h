// Reads the file that describes a cluster: TOML, see docs/FORMAT.md.
//   Limits  kMaxClusterFileBytes; those of cluster.h and nccl_xml.h.
//   Errors  kIo: a file cannot be read; kConfig: all that is wrong with the keys, one line each,
//           "FILE:LINE: hosts.gpus is 0; must be from 1 to 256"; kCorrupt: the topology file.
#pragma once

#include <string>
#include <string_view>

#include "lib/topo/cluster.h"

namespace gxp {

inline constexpr size_t kMaxClusterFileBytes = 1u << 20;

ClusterDescription load_cluster(const std::string& path);
// `path` is for messages, and topology files are looked for beside it.
ClusterDescription parse_cluster(std::string_view text, const std::string& path);

}  // namespace gxp

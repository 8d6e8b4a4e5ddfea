// What differs between two hosts, or one host before and after: parts that are missing, added or
// elsewhere, links that are slower, devices that NCCL finds farther apart. Bus ids do not count.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/topo/model/host_tree.h"

namespace gxp {

enum class ChangeKind : uint8_t { kMissing, kAdded, kMoved, kSlower, kFaster, kChanged, kPath };

std::string_view to_string(ChangeKind kind);  // "missing"

struct HostChange {
  ChangeKind kind = ChangeKind::kChanged;
  std::string part;  // by its name in the first host; of an added one in the second
  std::string what;  // "PCIe lanes"; "" of parts that are missing or added
  std::string first, second;
};

// In the order of the first host's parts; none of equal hosts. Of a part that is missing or added
// with all below it one change tells. kPath: path types between GPUs and ports that differ though
// both ends are there, those of one kind of change as one.
//   Errors  kConfig: NcclPaths' limits.
std::vector<HostChange> compare_hosts(const HostTree& first, const HostTree& second);

}  // namespace gxp

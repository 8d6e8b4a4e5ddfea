// The differences between two hosts, or one host before and after: parts that are missing, added or
// moved, slower links, devices that NCCL finds farther apart. Bus ids do not count.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/topo/model/part_id.h"

namespace gxp {

class HostTree;

enum class ChangeKind : uint8_t { kMissing, kAdded, kMoved, kSlower, kFaster, kChanged, kPath };

std::string_view to_string(ChangeKind kind);  // "missing"

struct HostChange {
  ChangeKind kind = ChangeKind::kChanged;
  std::string part;  // by its name in the first host; of an added one in the second
  std::string what;  // "PCIe lanes"; "" of parts that are missing or added
  std::string first, second;
};

// In the order of the first host's parts; equal hosts have none. A part that is missing or added
// with all below it is one change. kPath: path types between GPUs and ports that both hosts have;
// pairs with the same change are one.
//   Errors  kConfig: NcclPaths' limits; one host's source alone tells where devices are,
//           or how fast.
std::vector<HostChange> compare_hosts(const HostTree& first, const HostTree& second);

// The first step of a comparison: for each part of `a` the matching part of `b`, or kNoPart. Parts
// match by what they are and where they lie, not by bus ids, which differ between equal machines.
//
// The search goes from the NUMA nodes down. Among the parts below two matched parts, it matches
// first those with the same key (a port's guid or name, a GPU's number; for a bridge or NIC the
// keys below it), then equal subtrees, then parts of one kind, in order. The rest is matched
// anywhere, by a port's guid or name and by equal subtrees.
//   Cost  a few looks at each part.
std::vector<PartId> match_parts(const HostTree& a, const HostTree& b);
// Describes a part without its bus id and number; the same text for equal parts.
std::string likeness(const HostTree& host, PartId part);

}  // namespace gxp

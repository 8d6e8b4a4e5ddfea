// Which part of one host is which of another, by what they are and where they lie, not by their bus
// ids, which differ between machines that are alike.
//
// From the NUMA nodes down, among the parts below two that belong together: first those with the
// same key (a port's guid or name, a GPU's number; of a bridge or NIC what is below it), then those
// that are alike with all that is below them, then those of one kind, in order. What is left over
// is looked for anywhere by its port's guid or name, and whatever is alike.
//   Cost  a few looks at each part.
#pragma once

#include <vector>

#include "lib/topo/model/host_tree.h"

namespace gxp {

// By the parts of `a`: the part of `b`, or kNoPart.
std::vector<PartId> match_parts(const HostTree& a, const HostTree& b);

// Words for what a part is, its bus id and number left out: equal of parts that are alike.
std::string likeness(const HostTree& host, PartId part);

}  // namespace gxp

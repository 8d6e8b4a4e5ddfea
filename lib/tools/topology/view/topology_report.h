// A topology as a report, for programs.
#pragma once

#include "lib/report/report.h"

namespace gxp {

struct Topology;

// devices[] of {id, kind, name, ...}, whose ids are names_of_parts(); a NUMA node's caches are
// three lists: level, bytes of each, count. links[] are the cross links; paths[] the paths between
// GPUs and ports as NCCL finds them, {from, to, type, bandwidth_gb_s, limiting_hop}; hosts[] and
// switches[] a cluster's; channels[] those of a file of rings and trees; absent[], notes[]. `tree`
// numbers the kinds of hosts.
Report topology_report(const Topology& topology);

}  // namespace gxp

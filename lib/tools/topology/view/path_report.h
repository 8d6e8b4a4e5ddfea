// The path between two devices of a host, as a report: its hops, what limits it, where NCCL sends
// data instead, and the rules that decided.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/report/report.h"
#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {

// The GPU, port or NUMA node of that name, or the first port of the NIC of that name. kUsage: there
// is none, or NCCL has no paths to it.
PartId find_end(const NcclPaths& paths, std::string_view name);

// A sum of NCCL's constants, rounded so that no error of binary fractions shows.
double rounded(double gb_per_s);

// Whether the source tells the speed of every link of the path (HostTree::speeds_known).
bool tells_speed(const HostTree& host, const NcclPath& path);

// Facts: from, to, type, bandwidth_gb_s, rule, used (where NCCL sends data), verdicts. Table
// "hops". Facts that the source does not have (HostTree::speeds_known, places_known) are null or
// "unknown".
void add_path(Report& report, const NcclRoutes& routes, PartId from, PartId to);

// A row of path_columns() for any two GPUs and ports: from, to; type, bandwidth_gb_s, limiting_hop
// by the wiring; used.type, used.bandwidth_gb_s, used.via of the route that NCCL takes. `tree`
// numbers the host.
std::vector<Column> path_columns();
void add_paths(Table& table, const NcclRoutes& routes, size_t tree);

}  // namespace gxp

// `gxp topo --probe`: measures latency and bandwidth between ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/job/join.h"
#include "lib/tools/topology/view/measured_links.h"

namespace CLI {
class App;
}

namespace gxp {

struct TopoProbeOptions {
  bool on = false;
  double seconds = 0.5;  // of each direction of a pair
  LaunchRequest launch;
  std::vector<std::string> comm_sets;
};

// --probe, --probe-seconds and what starts and joins ranks.
void add_probe_options(CLI::App& app, TopoProbeOptions& options);

// Starts the ranks or joins them, measures, and gives what was measured to `use`, on rank 0 alone,
// whose host is the links' own. Returns the exit code.
int probe_topology(TopoProbeOptions& options,
                   const std::function<void(const std::vector<MeasuredLink>&)>& use);

}  // namespace gxp

// gxp topo show --rank: what a rank has, and how it reaches the others.
#include <CLI/CLI.hpp>
#include <climits>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/topo/topo.h"
#include "lib/base/environment.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/view/rank_view.h"
#include "lib/tools/topology/view/visible_gpus.h"

namespace gxp {

CLI::Option* add_rank_options(CLI::App& app, TopoRankOptions& options) {
  CLI::Option* rank = add_number_option(
      app, "--rank", options.rank, 0, INT_MAX,
      "Print this rank's devices, neighbours and paths. Neighbours are those in rings "
      "and trees; ranks fill the GPUs host by host");
  add_hosts_option(app, options.hosts)->needs(rank);
  return rank;
}

int print_rank(const TopoRankOptions& options, const std::string& from, Format format) {
  Topology topology = load_topology(from);
  std::vector<std::string> assumed;
  if (from == "live") assumed = rank_visible_gpus(*topology.trees.at(0), process_environment());
  repeat_host(topology, options.hosts);
  RankView view = view_rank(topology, options.rank);
  view.notes.insert(view.notes.begin(), assumed.begin(), assumed.end());
  print(rank_report(topology, view), format);
  return kExitOk;
}

}  // namespace gxp

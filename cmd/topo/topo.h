// The actions of `gxp topo`, and what they share.
//
// One more action is a file cmd/topo/NAME.cc with its `define` and a row in topo.cc. `gxp topo`
// without an action is `gxp topo show`.
#pragma once

#include <string>

#include "cmd/command.h"
#include "lib/report/report.h"

namespace CLI {
class Option;
}

namespace gxp {

struct Topology;

// --from FILE|NAME|live
void add_from_option(CLI::App& app, std::string& from);

// --hosts N; 0 if it is not given.
CLI::Option* add_hosts_option(CLI::App& app, int& hosts);
// Repeats the topology's only host; 0: leaves the topology as it is. kUsage: it has several hosts.
void repeat_host(Topology& topology, int hosts);

struct TopoRankOptions {
  int rank = -1;  // none was asked for
  int hosts = 0;  // 0: those of the topology
};
// --rank and --hosts. Returns the former.
CLI::Option* add_rank_options(CLI::App& app, TopoRankOptions& options);
// `gxp topo show --rank N`: what a rank has, and how it reaches the others; on this host as the
// CUDA driver would show its GPUs to ranks. Returns the exit code.
int print_rank(const TopoRankOptions& options, const std::string& from, Format format);

using DefineAction = std::function<int()>(CLI::App& app);
DefineAction define_topo_show, define_topo_matrix, define_topo_path, define_topo_diff;
DefineAction define_topo_fix, define_topo_doctor, define_topo_plan, define_topo_lint;

// `gxp topo matrix` without further options; returns the exit code.
int print_smi_matrix(const std::string& from);

}  // namespace gxp

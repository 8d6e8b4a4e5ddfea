// The actions of `gxp topo`, and what they share.
//
// One more action is a file cmd/topo/NAME.cc with its `define` and a row in topo.cc. `gxp topo`
// without an action is `gxp topo show`.
#pragma once

#include <string>

#include "cmd/command.h"
#include "lib/topo/read/topology.h"

namespace CLI {
class Option;
}

namespace gxp {

// --from FILE|NAME|live
void add_from_option(CLI::App& app, std::string& from);

// --hosts N; 0 if it is not given.
CLI::Option* add_hosts_option(CLI::App& app, int& hosts);
// As many hosts that are like the topology's one; 0: those that it has. kUsage: it has several.
void repeat_host(Topology& topology, int hosts);

std::function<int()> define_topo_lint(CLI::App& app);
std::function<int()> define_topo_show(CLI::App& app);
std::function<int()> define_topo_doctor(CLI::App& app);
std::function<int()> define_topo_matrix(CLI::App& app);
std::function<int()> define_topo_path(CLI::App& app);
std::function<int()> define_topo_diff(CLI::App& app);
std::function<int()> define_topo_fix(CLI::App& app);

// `gxp topo matrix` without further options; returns the exit code.
int print_smi_matrix(const std::string& from);
std::function<int()> define_topo_plan(CLI::App& app);

}  // namespace gxp

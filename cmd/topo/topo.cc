// gxp topo: a command of commands, each of which asks something of a topology.
#include "cmd/topo/topo.h"

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <memory>

#include "cmd/options.h"
#include "lib/base/error.h"
#include "lib/tools/topology/read/topology.h"

namespace gxp {
namespace {

constexpr std::array kActions = {
    Command{"show", "Print the devices of a topology and their links", define_topo_show},
    Command{"matrix", "Print the path types between GPUs and NICs, as nvidia-smi topo -m",
            define_topo_matrix},
    Command{"path", "Print the path between two devices, its limit, and NCCL's verdicts",
            define_topo_path},
    Command{"diff", "Print the differences between two hosts, ignoring bus ids", define_topo_diff},
    Command{"fix", "Write the NCCL_TOPO_FILE of a VM from the bare-metal host's topology",
            define_topo_fix},
    Command{"doctor", "Check a host for causes of slow GPU and NIC traffic", define_topo_doctor},
    Command{"plan", "Plan rings and trees through the GPUs, and the order of hosts",
            define_topo_plan},
    Command{"lint", "Check a topology file for what NCCL would reject, misread or guess",
            define_topo_lint},
};

// The first option that was given to `app` itself; "" if none was.
std::string first_given(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0) return option->get_name();
  }
  return "";
}

}  // namespace

void add_from_option(CLI::App& app, std::string& from) {
  app.add_option("--from", from,
                 "Topology: a file in any supported format, - for stdin, a machine's name, or live "
                 "for this host")
      ->type_name("FILE|NAME|live")
      ->capture_default_str();
}

CLI::Option* add_hosts_option(CLI::App& app, int& hosts) {
  return add_number_option(app, "--hosts", hosts, 1, int(Topology::kMaxHosts),
                           "Repeat the topology's single host N times");
}

void repeat_host(Topology& topology, int hosts) {
  if (hosts == 0) return;
  if (topology.hosts.size() != 1) {
    fail(ErrorKind::kUsage, "--hosts {}: {} has {} hosts; leave it out", hosts, topology.name,
         topology.hosts.size());
  }
  const TopologyHost host = topology.hosts[0];
  topology.hosts.clear();
  for (int i = 0; i < hosts; ++i) {
    topology.hosts.push_back(host);
    topology.hosts.back().name = fmt::format("host{}", i);
  }
}

std::function<int()> define_topo(CLI::App& app) {
  const auto show = define_topo_show(app);
  auto actions = std::make_shared<std::map<const CLI::App*, std::function<int()>>>();
  app.require_subcommand(0, 1);
  for (const Command& action : kActions) {
    CLI::App* below = app.add_subcommand(action.name, action.summary);
    (*actions)[below] = action.define(*below);
  }
  return [&app, show, actions] {
    const auto chosen = app.get_subcommands();
    if (chosen.empty()) return show();
    if (const std::string given = first_given(app); !given.empty())
      fail(ErrorKind::kUsage, "{}: was given before the action; put it after: gxp topo {} {}",
           given, chosen[0]->get_name(), given);
    return actions->at(chosen[0])();
  };
}

}  // namespace gxp

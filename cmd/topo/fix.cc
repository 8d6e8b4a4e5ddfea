// gxp topo fix: the NCCL_TOPO_FILE of a virtual machine, from the topology of the bare-metal host.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/exit_codes.h"
#include "cmd/result_file.h"
#include "cmd/topo/topo.h"
#include "lib/base/log.h"
#include "lib/tools/topology/compare/vm_topology.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/sources.h"

namespace gxp {
namespace {

struct FixOptions {
  std::string bare, devices, output;
};

int run(const FixOptions& options) {
  check_writable(options.output);
  const HostTree bare = load_host(options.bare);
  const HostTree vm = load_host(options.devices);
  const VmTopology made = make_vm_topology(bare, vm);
  for (const DeviceMatch& match : made.matches)
    log_info("topo: {} {} matches {} of the bare-metal host: {}", to_string(vm[match.vm].kind),
             vm[match.vm].bus_id, bare[match.bare].bus_id, match.why);
  for (const std::string& note : made.notes) log_warn("topo: {}", note);
  const std::string xml = write_nccl_xml(made.host);
  if (options.output.empty()) {
    write_stdout(xml);
  } else {
    write_file(options.output, xml);
  }
  log_info(
      "topo: for all {} pairs of devices, NCCL finds the same path type as on the bare-metal host",
      made.equal_pairs);
  return kExitOk;
}

}  // namespace

std::function<int()> define_topo_fix(CLI::App& app) {
  auto options = std::make_shared<FixOptions>();  // kept alive by the returned action
  app.add_option("--for-vm", options->bare,
                 "Topology of the bare-metal host, as for gxp topo --from")
      ->required()
      ->type_name("FILE|NAME");
  app.add_option("--devices", options->devices,
                 "The VM's own topology: NCCL's dump (NCCL_TOPO_DUMP_FILE), or live")
      ->required()
      ->type_name("FILE|live");
  app.add_option("-o,--output", options->output, "File to write, for NCCL_TOPO_FILE")
      ->type_name("FILE")
      ->default_str("stdout");
  return [options] { return run(*options); };
}

}  // namespace gxp

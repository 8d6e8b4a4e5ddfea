// gxp topo path: the path between two devices, what limits it, and by what rules NCCL uses it.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/topo/nccl.h"
#include "cmd/topo/topo.h"
#include "lib/tools/topology/view/path_report.h"

namespace gxp {
namespace {

struct PathOptions {
  std::string device, other;
  std::string from = "live";
  std::vector<std::string> nccl;
  Format format = Format::kText;
};

int run(const PathOptions& options) {
  const NcclHost nccl(options.from, options.nccl);
  Report report{.schema = "gxp.topo/1"};
  add_path(report, nccl.routes, find_end(nccl.paths, options.device),
           find_end(nccl.paths, options.other));
  print(report, options.format);
  return kExitOk;
}

}  // namespace

std::function<int()> define_topo_path(CLI::App& app) {
  auto options = std::make_shared<PathOptions>();  // kept alive by the returned action
  app.add_option("DEVICE", options->device,
                 "First end: GPU0, NIC3, NUMA1, mlx5_0, eth0 or a bus id")
      ->required();
  app.add_option("OTHER", options->other, "Other end")->required();
  add_from_option(app, options->from);
  add_nccl_option(app, options->nccl);
  add_format_option(app, options->format);
  return [options] { return run(*options); };
}

}  // namespace gxp

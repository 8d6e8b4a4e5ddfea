// gxp topo diff: what differs between two hosts, or one before and after.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/topo/topo.h"
#include "lib/base/error.h"
#include "lib/report/report.h"
#include "lib/tools/topology/compare/host_diff.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

struct DiffOptions {
  std::string first, second;
  Format format = Format::kText;
};

int run(const DiffOptions& options) {
  const std::vector<HostChange> changes =
      compare_hosts(load_host(options.first), load_host(options.second));
  Report report{.schema = "gxp.topo/1"};
  report.facts = {{{"differences"}, int64_t(changes.size())}};
  Table& table =
      report.add_table("changes", {{"change"}, {"part"}, {"what"}, {"first"}, {"second"}});
  for (const HostChange& change : changes)
    table.add_row(to_string(change.kind), change.part, change.what, change.first, change.second);
  print(report, options.format);
  return changes.empty() ? kExitOk : exit_code(ErrorKind::kMismatch);
}

}  // namespace

std::function<int()> define_topo_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();  // kept alive by the returned action
  app.add_option("FIRST", options->first,
                 "First host: a file, a name or live, as for gxp topo --from")
      ->required();
  app.add_option("SECOND", options->second, "Second host")->required();
  add_format_option(app, options->format);
  return [options] { return run(*options); };
}

}  // namespace gxp

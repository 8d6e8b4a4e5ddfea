// gxp topo show: what there is in a topology and how it is joined.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "cmd/choice_option.h"
#include "cmd/exit_codes.h"
#include "cmd/result_file.h"
#include "cmd/topo.h"
#include "lib/base/error.h"
#include "lib/inspect/topology_report.h"
#include "lib/inspect/tree_text.h"
#include "lib/topo/nccl_xml.h"
#include "lib/topo/sources.h"

namespace gxp {
namespace {

enum class TopoFormat { kText, kJson, kNcclXml };
constexpr std::array<std::string_view, 3> kTopoFormats = {"text", "json", "nccl-xml"};

struct Options {
  std::string from = "live";
  TopoFormat format = TopoFormat::kText;
};

// NCCL's file is that of one host.
std::string nccl_xml_of(const Topology& topology) {
  if (topology.trees.size() != 1) {
    fail(ErrorKind::kConfig, "write NCCL XML of {}: it has {} kinds of hosts; one is needed",
         topology.name, topology.trees.size());
  }
  return write_nccl_xml(topology.trees[0]);
}

int run(const Options& options) {
  const Topology topology = load_topology(options.from);
  switch (options.format) {
    case TopoFormat::kText:
      write_stdout(tree_text(topology));
      break;
    case TopoFormat::kJson:
      print(topology_report(topology), Format::kJson);
      break;
    case TopoFormat::kNcclXml:
      write_stdout(nccl_xml_of(topology));
      break;
  }
  return kExitOk;
}

}  // namespace

std::function<int()> define_topo_show(CLI::App& app) {
  auto options = std::make_shared<Options>();  // kept alive by the returned action
  add_from_option(app, options->from);
  add_choice_option(app, "--format", options->format, kTopoFormats, "What is written to stdout");
  return [options] { return run(*options); };
}

}  // namespace gxp

// gxp topo show: the devices of a topology and their links.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "cmd/choice_option.h"
#include "cmd/exit_codes.h"
#include "cmd/result_file.h"
#include "cmd/topo/probe.h"
#include "cmd/topo/topo.h"
#include "lib/base/error.h"
#include "lib/tools/topology/read/channel_graphs.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/view/topology_picture.h"
#include "lib/tools/topology/view/topology_report.h"
#include "lib/tools/topology/view/tree_text.h"

namespace gxp {
namespace {

enum class TopoFormat { kText, kJson, kNcclXml, kSvg };
constexpr std::array<std::string_view, 4> kTopoFormats = {"text", "json", "nccl-xml", "svg"};

struct ShowOptions {
  std::string from = "live";
  TopoFormat format = TopoFormat::kText;
  bool matrix = false;
  TopoRankOptions rank;
  TopoProbeOptions probe;
};

// NCCL's file is that of one host.
std::string nccl_xml_of(const Topology& topology) {
  if (!topology.channel_graphs.empty())
    return write_channel_graphs({.graphs = topology.channel_graphs});
  if (topology.trees.size() != 1) {
    fail(ErrorKind::kConfig,
         "write NCCL XML of {}: it has {} different hosts; the file "
         "describes one",
         topology.name, topology.trees.size());
  }
  return write_nccl_xml(*topology.trees[0]);
}

// Pictures are of hardware.
const Topology& drawable(const Topology& topology) {
  if (topology.hosts.empty())
    fail(ErrorKind::kConfig, "draw {}: {} describes no host", topology.name, topology.source);
  return topology;
}

// With the measurements, if there are any, on the graph of their host.
void show(const ShowOptions& options, const std::vector<MeasuredLink>& measured) {
  Topology topology = load_topology(options.from);
  HostTree* host =
      topology.hosts.size() == 1 && topology.trees.size() == 1 ? topology.trees[0].get() : nullptr;
  if (host != nullptr) put_on(*host, measured);
  Report report;
  switch (options.format) {
    case TopoFormat::kText:
      report.tables.push_back(table_of(measured, host));
      write_stdout(tree_text(topology) + (measured.empty() ? "" : "\n" + to_text(report)));
      break;
    case TopoFormat::kJson:
      report = topology_report(topology);
      if (!measured.empty()) report.tables.push_back(table_of(measured, host));
      print(report, Format::kJson);
      break;
    case TopoFormat::kNcclXml:
      write_stdout(nccl_xml_of(topology));
      break;
    case TopoFormat::kSvg:
      write_stdout(to_svg(draw_topology(drawable(topology))));
      break;
  }
}

// kUsage: the format is one of pictures or of NCCL's files; a rank's view is a report.
Format rank_format(TopoFormat format) {
  if (format == TopoFormat::kText) return Format::kText;
  if (format == TopoFormat::kJson) return Format::kJson;
  fail(ErrorKind::kUsage, "--rank: format {} cannot show a rank's view; use text or json",
       kTopoFormats[size_t(format)]);
}

int run(ShowOptions& options) {
  if (options.matrix) return print_smi_matrix(options.from);
  if (options.rank.rank >= 0)
    return print_rank(options.rank, options.from, rank_format(options.format));
  if (!options.probe.on) {
    show(options, {});
    return kExitOk;
  }
  if (options.format == TopoFormat::kNcclXml)
    fail(ErrorKind::kUsage, "--probe: nccl-xml cannot hold measurements; use another format");
  return probe_topology(options.probe, [&](const auto& measured) { show(options, measured); });
}

}  // namespace

std::function<int()> define_topo_show(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();  // kept alive by the returned action
  add_from_option(app, options->from);
  CLI::Option* format =
      add_choice_option(app, "--format", options->format, kTopoFormats, "Output format");
  CLI::Option* rank = add_rank_options(app, options->rank);
  app.add_flag("-m,--matrix", options->matrix, "Same as gxp topo matrix")
      ->excludes(format)
      ->excludes(rank);
  add_probe_options(app, options->probe);
  rank->excludes(app.get_option("--probe"));
  return [options] { return run(*options); };
}

}  // namespace gxp

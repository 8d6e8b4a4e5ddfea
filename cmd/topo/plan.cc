// gxp topo plan: rings and trees through the GPUs of a host, and over hosts; the order of hosts.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "cmd/choice_option.h"
#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/result_file.h"
#include "cmd/topo/topo.h"
#include "lib/base/error.h"
#include "lib/tools/topology/read/channel_graphs.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/rings/plan_graphs.h"
#include "lib/tools/topology/rings/rank_seats.h"
#include "lib/tools/topology/view/plan_report.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/plan/plan_file.h"

namespace gxp {
namespace {

enum class PlanFormat { kText, kJson, kNcclXml, kHostfile, kRankPlan };
constexpr std::array<std::string_view, 5> kPlanFormats = {"text", "json", "nccl-xml", "hostfile",
                                                          "rank-plan"};

struct PlanOptions {
  std::string from = "live";
  PlanFormat format = PlanFormat::kText;
  int hosts = 0;
  int channels = RingRequest{}.most_channels;
};

// NCCL's file is that of one kind of hosts.
std::string nccl_xml_of(const Topology& topology, const ClusterPlan& plan) {
  if (topology.trees.size() != 1) {
    fail(ErrorKind::kConfig,
         "write NCCL's graph of {}: it has {} different hosts; the file "
         "describes one",
         topology.name, topology.trees.size());
  }
  return write_channel_graphs(channel_graphs_of(plan, *topology.trees[0]));
}

std::string hostfile_of(const Topology& topology, const ClusterPlan& plan) {
  for (const auto& tree : topology.trees) {
    if (count_hosts(*tree) > 1)
      fail(ErrorKind::kConfig,
           "write a hostfile of {}: it describes several hosts that NVLink joins, without names",
           topology.name);
  }
  const int slots = plan.kinds.size() == 1 ? plan.kinds[0].gpus() : 0;
  return to_hostfile(topology, plan.host_order, slots);
}

int run(const PlanOptions& options) {
  Topology topology = load_topology(options.from);
  repeat_host(topology, options.hosts);
  const ClusterPlan plan = plan_cluster(topology, options.channels);
  switch (options.format) {
    case PlanFormat::kText:
      print(plan_report(topology, plan), Format::kText);
      break;
    case PlanFormat::kJson:
      print(plan_report(topology, plan), Format::kJson);
      break;
    case PlanFormat::kNcclXml:
      write_stdout(nccl_xml_of(topology, plan));
      break;
    case PlanFormat::kHostfile:
      write_stdout(hostfile_of(topology, plan));
      break;
    case PlanFormat::kRankPlan:
      write_stdout(write_plan_file(plan_of_seats(topology, plan)));
      break;
  }
  return kExitOk;
}

}  // namespace

std::function<int()> define_topo_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();  // kept alive by the returned action
  add_from_option(app, options->from);
  add_choice_option(app, "--format", options->format, kPlanFormats,
                    "Output format. nccl-xml is a file for NCCL_GRAPH_FILE, rank-plan one for "
                    "comm.topology");
  add_hosts_option(app, options->hosts);
  add_number_option(app, "--channels", options->channels, 1, 1024, "Maximum number of channels");
  return [options] { return run(*options); };
}

}  // namespace gxp

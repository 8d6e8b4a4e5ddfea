#include <fmt/format.h>

#include <algorithm>

#include "lib/tools/colltest/simulate/simulate.h"
#include "lib/tools/colltest/simulate/simulation_report.h"
#include "lib/tools/colltest/simulate/simulator.h"

namespace gxp {
namespace {

int ranks_of_a_host(const GroupTopology& topology) {
  return topology.hosts.empty() ? topology.world_size
                                : int(std::ranges::count(topology.hosts, topology.hosts[0]));
}

int hosts_of(const GroupTopology& topology) {
  return topology.hosts.empty() ? 1 : *std::ranges::max_element(topology.hosts) + 1;
}

FlatLinks links_of(const GroupTopology& topology, const Profile& profile) {
  const int ranks = ranks_of_a_host(topology);
  const int hosts = hosts_of(topology);
  const LinkClass& inside = find_link(profile, topology.transport, ranks, 1);
  const LinkClass* between =
      hosts == 1 ? nullptr : &find_link(profile, topology.transport, 1, hosts);
  return {.inside = inside,
          .between = between,
          .inside_scale =
              profile.machine.ranks_per_core(ranks) / profile.machine.ranks_per_core(inside.ranks)};
}

// "verbs among 2 ranks"
std::string name_of(const LinkClass& link) {
  return link.hosts > 1 ? fmt::format("{} among {} hosts", link.transport, link.hosts)
                        : fmt::format("{} among {} ranks", link.transport, link.ranks);
}

}  // namespace

SimulatedCases simulate_cases(std::span<const BenchCase> cases, const GroupTopology& topology,
                              const Profile& profile, const SelectionSettings& settings,
                              bool trace) {
  const CostModel model(topology, profile);
  const FlatLinks links = links_of(topology, profile);
  std::string measured = name_of(links.inside);
  if (links.between != nullptr) measured += ", " + name_of(*links.between);
  SimulationReport report({{{"measured_over", "measured over"}, measured},
                           {{"hosts"}, int64_t{hosts_of(topology)}},
                           {{"world_size", "ranks"}, int64_t{topology.world_size}}},
                          cases, trace);
  for (const BenchCase& bench : cases) {
    if (!bench.operation->collective) continue;  // one message each
    const AlgorithmPlan plan =
        select_algorithm(call_of(bench, 0), settings, model, MemoryOrigin::kOrdinary);
    const CallShape shape = shape_of(call_of(bench, 0), plan, topology);
    const SimulationOptions options{.busiest = kBusiestShown, .keep_steps = report.traces(bench)};
    if (options.keep_steps) check_traceable(*plan.algorithm, bench, shape);
    report.add(bench, {plan.algorithm, shape,
                       simulate(*plan.algorithm, shape, bench.dtype, links, options)});
  }
  return std::move(report).finish();
}

}  // namespace gxp

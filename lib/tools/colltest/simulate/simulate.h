// The simulated times of cases on a cluster (simulate/simulator.h). Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/collective/tune/selection.h"
#include "lib/report/report.h"
#include "lib/tools/colltest/cases.h"
#include "lib/tools/topology/model/cluster.h"
#include "lib/topo/plan/rank_plan.h"

namespace gxp {

struct SimulatedCases {
  Report report;                   // a row per case, and its busiest links
  std::vector<std::string> notes;  // what was not tried, and why
  std::string trace;               // of the last case, for the viewers of simulation_report.h
};

// Rank r on gpu_of_rank[r] (place_ranks(), plan_ranks()). With a plan of these ranks
// (plan_of_ranks), rings have its channels unless `settings` say how many, and groups are its
// groups. `auto` means the fastest algorithm and segment of all that `settings` admit and that
// take at most some seconds to simulate: the others are named in `notes`. kUsage: none of them is
// left for a case, or a trace would have more than a million steps. At least one case.
SimulatedCases simulate_cases(std::span<const BenchCase> cases, const Cluster& cluster,
                              std::vector<int> gpu_of_rank, const SelectionSettings& settings,
                              bool trace, const RankPlan& plan = {});

// Over the links that a calibration has measured (profile.h), in messages alone, for ranks joined
// as `topology` says. `auto` means what a run would choose. As many ranks on each host. kConfig:
// the profile lacks a curve.
SimulatedCases simulate_cases(std::span<const BenchCase> cases, const GroupTopology& topology,
                              const Profile& profile, const SelectionSettings& settings,
                              bool trace);

}  // namespace gxp

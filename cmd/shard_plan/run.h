// gxp shard-plan RUN.toml: what gxp train would do in a step of a run, from the program that it
// would run. Starts no ranks.
#pragma once

#include <string>
#include <vector>

#include "cmd/run_network.h"
#include "cmd/shard_plan/model_plan.h"
#include "lib/report/report.h"

namespace gxp {

struct ShardPlanOptions {
  std::string config_path;
  std::vector<std::string> sets;
  PlannedRanks ranks;
  int rank = 0;
  bool measure = false;
  double gflops = 0;           // 0: measured here
  std::string gpu_of_classes;  // "": no classes of kernels are predicted
  double memory_gb_per_s = 10;
  double file_gb_per_s = 1;
  bool units = false;
  bool program = false;
  bool compare = false;
  std::string svg;
  ModelPlanOptions model;
  Format format = Format::kText;
};

// Prints facts and wire[], and what the options ask for (report.h). Errors: kUsage; as
// load_config() and network_of_run().
int plan_run_file(const ShardPlanOptions& options);

}  // namespace gxp

// Published runs as plans, with the seconds that a step took; and the rows that no plan says.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "lib/tools/planner/train_plan.h"

namespace gxp {

struct PublishedRun {
  std::string name;
  TrainCase question;
  double seconds = 0;
  double peak_gib = 0;  // 0: not told
};

struct PublishedRuns {
  std::deque<PublishedModel> models;  // of the questions
  std::deque<Hardware> hardware;      // likewise
  std::vector<PublishedRun> runs;
  std::vector<std::string> out_of_scope;  // a row, and why
};

PublishedRuns read_llm_foundry();
PublishedRuns read_torchtitan();
PublishedRuns read_megatron_bridge();
PublishedRuns read_fms_fsdp();

}  // namespace gxp

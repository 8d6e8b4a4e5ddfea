// What `gxp train --status` shows of a job.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/collective/flight/diagnosis.h"
#include "lib/job/status/training_facts.h"
#include "lib/report/report.h"

namespace gxp {

// Where a rank's process is.
struct ProcessPlace {
  std::string host;
  int64_t process = 0;
};

struct JobAnswers {
  std::vector<RankReport> ranks;
  std::map<int, ProcessPlace> known;  // also of ranks that may not answer now

  // "" and 0 if it is not known.
  [[nodiscard]] ProcessPlace place_of(int rank) const;
};

// A rank's activity in words: that of its record, or "communication" where a step is in a
// collective, "not responding", "ended", "not joined".
std::string describe_activity(const RankReport& rank);

// "gxp.train-status/1". The ranks' waits are explained where one has lasted a second, and longer than
// a step usually takes.
Report describe_job(const TrainingFacts& facts, const JobAnswers& answers);

}  // namespace gxp

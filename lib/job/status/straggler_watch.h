// Finds, in a step, the rank that all others wait for, and tells of it once the wait is over.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "lib/collective/flight/flight_record.h"
#include "lib/job/status/status_report.h"
#include "lib/job/status/training_facts.h"

namespace gxp {

// A wait counts from a second on, and from half of what a step usually takes. Steps that evaluate or
// save may wait for as long as they like, and so may the first step of a process, in which much
// happens once. Rank 0's own record starts the search, so all other ranks are asked only where
// something is wrong.
class StragglerWatch {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{250};
  static constexpr int kMostWarnings = 20;

  // To be called every kLookEvery with rank 0's record; `ask` asks all ranks. The text of a warning
  // about a wait that is over, if there is one.
  std::optional<std::string> look(const FlightRecord& own, const TrainingFacts& facts,
                                  const std::function<JobAnswers()>& ask);

 private:
  struct Episode {
    int64_t changed_ns = 0;  // last change of rank 0's record, which ends with the next
    std::string text;        // who is late; "": nobody
    double waited_s = 0;     // when the ranks were asked
    int64_t asked_ns = 0;
  };
  [[nodiscard]] std::optional<std::string> count(std::string text);
  void begin(int64_t changed_ns, double limit, const JobAnswers& answers);

  std::optional<Episode> episode_;
  int64_t looked_ns_ = 0;
  int64_t ask_again_ns_ = 0;
  int warnings_ = 0;
};

}  // namespace gxp

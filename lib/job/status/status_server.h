// A thread of rank 0's process that watches the job: it answers `gxp train --status`, also while the
// job hangs, and warns of stragglers. It takes no lock that training holds.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "lib/base/fd.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/job/status/status_report.h"
#include "lib/job/status/status_socket.h"
#include "lib/job/status/straggler_watch.h"
#include "lib/job/status/training_facts.h"
#include "lib/net/store/rank_survey.h"

namespace gxp {

// What the watch looks at; all of it outlives the watch.
struct JobSources {
  const FlightRecorder& own;
  const TrainingFacts& facts;
  RankSurvey& survey;
};

class StatusServer {
 public:
  // `directory`: of the socket; "": there is none, and the job is watched only. Where the socket
  // cannot be made a warning says so.
  StatusServer(std::string directory, JobSources sources);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  // The run holds the lock of its directory from now on.
  void own_directory() noexcept;

 private:
  void run(const std::stop_token& stop);
  void take_socket(std::optional<StatusSocket>& socket, bool owns);
  void watch(const std::stop_token& stop);
  [[nodiscard]] JobAnswers ask();
  [[nodiscard]] FlightRecord own_record() const;
  void look_for_stragglers();

  const std::string directory_;
  const JobSources sources_;
  std::atomic<bool> owns_directory_ = false;
  Fd wake_;  // an eventfd: the thread has something to see
  StragglerWatch stragglers_;
  std::map<int, ProcessPlace> known_;  // of all ranks, once they have answered
  int introductions_ = 0;              // how often all were asked who they are
  std::jthread thread_;                // last: it uses all above
};

}  // namespace gxp

// What a rank that a failed job leaves behind tells of the failure: DIRECTORY/rank-N.json, and its
// flight record, DIRECTORY/rank-N.flight. For its own user only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/environment.h"
#include "lib/collective/flight/flight_record.h"
#include "lib/job/failure/thread_stacks.h"
#include "lib/net/store/verdict.h"

namespace gxp {

struct RankFailure {
  int rank = 0;
  int world_size = 1;
  std::string host{};
  int64_t process = 0;
  std::string time{};                       // of day, UTC
  std::string error{};                      // with which this rank ends
  std::optional<FailureVerdict> verdict{};  // on the job, if there was one
  int64_t step = 0;                         // that the rank was in; 0: before the first
  std::string activity{};
  std::string metrics{};    // rank 0's line of the last step that has ended; "": none
  std::string build{};      // build_id()
  std::string cpu{};        // with the number of CPUs that the rank may use
  std::string transport{};  // how ranks are connected; "": not yet
  std::map<std::string, std::string> environment{};  // shown_environment()
  std::vector<ThreadStack> threads{};
  std::string flight{};  // FlightRecorder::image()
};

// The variables that may be told: those that decide how a job runs, by an allow-list, and of them none
// whose name has a word for something secret.
std::map<std::string, std::string> shown_environment(const Environment& environment);

// In a run's directory.
std::string failure_directory(const std::string& run);

// Replaces the rank's files. kIo.
void write_failure(const std::string& directory, const RankFailure& failure);

// All that ranks have left, by rank, with their flight records (without, where none can be read). The
// files may hold anything: kCorrupt, naming the file, what is wrong, if one is no such report or has
// more than 4 MiB; kIo: there are none.
std::vector<RankFailure> read_failures(const std::string& directory);

// The flight record of a failure that was read.
std::optional<FlightRecord> flight_of(const RankFailure& failure);

// Whether ranks have left something there.
bool holds_failure(const std::string& directory);

// Puts the files of a failure aside, into DIRECTORY.old, where they replace those before them. Leaves
// other files alone. kIo.
void put_failure_aside(const std::string& directory);

}  // namespace gxp

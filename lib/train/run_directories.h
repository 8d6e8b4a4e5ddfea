// Where a run writes, and an earlier run's files there, which are removed only on request.
#pragma once

#include <string>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/train/directory_lock.h"

namespace gxp {

struct RunDirectories {
  std::string checkpoints;  // "": none
  std::string records;      // of resolved.toml and metrics.jsonl, of one run; "": none
  std::vector<std::string> metrics = {};  // files, in the order in which they are written
};

// `metrics_path`: a second file of metrics; "": none.
RunDirectories directories_of(const RunConfig& config, const std::string& metrics_path);

// Creates the directory where it is missing, and finds out before the first step whether files can
// be written there. kIo.
void prepare_directory(const std::string& path);

// What a run does with an earlier run's checkpoints and metrics.
enum class EarlierRun {
  kRefuse,    // it does not start
  kContinue,  // it goes on from them
  kReplace,   // it removes them
};

// Creates the directories and takes their locks, which the run holds; on one rank. Changes no file
// but the locks. Errors: kConfig: an earlier run's checkpoints or metrics exist and `request` is
// kRefuse; or, whatever the request, a file of metrics holds something else, or the directory of
// records holds those of a run with other checkpoints. kIo: `request` is kContinue and there is no
// checkpoint; a directory cannot be written to or read, or another run holds it.
std::vector<DirectoryLock> claim_directories(const RunDirectories& directories, EarlierRun request);

// Removes the complete checkpoints in `dir`, the oldest first, and nothing else. kIo.
void remove_checkpoints(const std::string& dir);

}  // namespace gxp

// Where a run writes, and an earlier run's files there, which are removed only on request.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lib/base/fd.h"
#include "lib/config/run_config.h"

namespace gxp {

// Allows one run at a time in a directory.
inline constexpr const char* kLockName = ".gxp.lock";

// Holds flock() on DIRECTORY/.gxp.lock, which names the holder's process and host; the file stays,
// the lock goes with the object or its process. On Linux's NFS the lock holds between hosts, too.
// Where the file system has no locks, a warning says so and nothing is held. Whoever can open the
// file can lock it and keep runs out, so the file is readable only by those to whom the umask gives
// write access.
// Errors: kIo, if the file cannot be made, or another holds it for longer than `patience`: a run
// that is being killed needs a moment to end. The message names the holder.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory,
                         std::chrono::milliseconds patience = std::chrono::milliseconds(500));

  // Takes the lock again, with a warning, where its file was removed or replaced, which lets
  // another run in. kIo if one has come. Nothing if the directory is gone.
  void keep();

 private:
  std::string directory_;
  Fd fd_;
};

// "process 12 on host a" of the run that holds the directory's lock; "": none does.
std::string holder_of(const std::string& directory);

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

// A job under the name that a launcher has given to it.
struct JobName {
  std::string name;        // one line
  bool restarted = false;  // the launcher has started its ranks again
};
using JobNames = std::vector<JobName>;  // one for each launcher; of nested ones any may restart it

struct DirectoryClaim {
  std::vector<DirectoryLock> locks;
  // What to do: as requested, or as the job's own files ask.
  EarlierRun earlier = EarlierRun::kRefuse;
};

// Creates the directories and takes their locks, which the run holds; on one rank. Changes no file
// but the locks. If one of `jobs` was restarted and has marked the directory of checkpoints
// (mark_directory()), an earlier attempt has carried out `request`: then the run continues from the
// newest checkpoint, or, if there is none, replaces what that attempt has written. Errors: kConfig:
// an earlier run's checkpoints or metrics exist and `request` is kRefuse; or, whatever the request, a
// file of metrics holds something else, or the directory of records holds those of a run with other
// checkpoints. kIo: `request` is kContinue and there is no checkpoint; a directory cannot be written
// to or read, or another run holds it.
DirectoryClaim claim_directories(const RunDirectories& directories, EarlierRun request,
                                 const JobNames& jobs = {});

// Marks the directory of checkpoints as this job's, from which all is gone that the job does not
// continue from; without a name, removes another job's mark. The run holds its lock. kIo.
void mark_directory(const std::string& dir, const JobNames& jobs);

// Removes the complete checkpoints in `dir`, the oldest first, and nothing else. kIo.
void remove_checkpoints(const std::string& dir);

}  // namespace gxp

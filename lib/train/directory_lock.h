// One run at a time in a directory.
#pragma once

#include <chrono>
#include <string>

#include "lib/base/fd.h"

namespace gxp {

inline constexpr const char* kLockName = ".gxp.lock";

// Holds flock() on DIRECTORY/.gxp.lock, which names the holder's process and host; the file stays,
// the lock goes with the object or its process. On Linux's NFS the lock holds between hosts, too.
// Where the file system has no locks, a warning says so and nothing is held.
// Errors: kIo, if the file cannot be made, or another holds it for longer than `patience`: a run
// that is being killed needs a moment to end. The message names the holder.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory,
                         std::chrono::milliseconds patience = std::chrono::milliseconds(500));

 private:
  Fd fd_;
};

}  // namespace gxp

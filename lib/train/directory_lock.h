// Allows one run at a time in a directory.
#pragma once

#include <chrono>
#include <string>

#include "lib/base/fd.h"

namespace gxp {

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

}  // namespace gxp

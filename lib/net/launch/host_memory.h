// A directory of a job on one host that outlives the ranks, for what they must find again after a
// restart: DIR/gxp-replica-XXXXXX, readable by its user alone, made and removed by the launcher.
// One whose launcher was killed lies there until another launcher of the same user makes its own.
#pragma once

#include <string>

#include "lib/base/fd.h"

namespace gxp {

// The ranks are told of it by this variable.
inline constexpr const char* kReplicaVariable = "GXP_REPLICA_DIR";

class HostMemory {
 public:
  // kIo: it cannot be made in `dir`, or not locked there.
  explicit HostMemory(const std::string& dir);
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  // Removes it with all that is in it.
  ~HostMemory();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  Fd lock_;  // of the directory, while this lives
};

}  // namespace gxp

// Replicas that a job finds again after a restart lie in the memory of its hosts, in parts
// (host_memory.h). If the job goes on without some of the hosts that are there, these give host 0
// the parts that the others lack, at the launchers' meeting (host_agreement.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace gxp {

class Store;

// One part of a replica, whole.
struct HeldPart {
  std::string job{};  // the attempt that has written it
  uint64_t step = 0;
  int rank = 0;
  bool frozen = false;
  int parts = 1;                     // of the replica
  std::vector<std::string> files{};  // in the host's directory, "DIR/FILE"; the last makes it whole

  auto fields() { return std::tie(job, step, rank, frozen, parts, files); }
};

// What each host holds, and whether it takes part in the next attempt.
struct HostHoldings {
  int host = 0;
  bool takes_part = true;
  std::vector<HeldPart> parts{};
};

struct FilesToGive {
  int host = 0;
  std::vector<std::string> files{};

  auto fields() { return std::tie(host, files); }
};

// What hosts that do not take part must give, so that the others have all of the newest replica
// that is whole on all together. Nothing of a replica that is not newer than `saved`. Pure.
std::vector<FilesToGive> files_to_give(std::span<const HostHoldings> hosts, int64_t saved);

// Both ends of one host's giving. They keep 16 MiB at most in rank 0's store. kPeer: the other end
// is lost or late.
// Reads the files from `directory`; kIo.
void give_files(Store& store, int host, std::span<const std::string> files,
                const std::string& directory);
// Writes them into `directory`. If that fails it takes them in nevertheless, removes those that it
// has written, and returns why; else "".
std::string take_files(Store& store, int host, std::span<const std::string> files,
                       const std::string& directory);

}  // namespace gxp

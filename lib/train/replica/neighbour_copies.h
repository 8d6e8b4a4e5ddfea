// Keeps the state in memory of two hosts while training goes on: every now and then each rank copies
// its part; a background thread writes it into the directory of its host (host_replicas.h) and sends
// it to the rank of the same number on the next host, which writes it into its own. Two replicas are
// kept: until all ranks have one, the one before it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/train/replica/background_task.h"
#include "lib/train/replica/staged_state.h"

namespace gxp {

class Communicator;
class Transport;

// Where replicas lie.
struct ReplicaPlaces {
  std::string directory;  // of this host
  int ranks_per_host = 1;
  Transport* transport = nullptr;  // of the background thread; null: there is one host
  // Called on rank 0 when it has a replica, on the background thread.
  std::function<void(int64_t step)> replicated = [](int64_t) {};
};

// Threads: one. One replica is in flight at a time.
class NeighbourCopies {
 public:
  // [collective] `files`: files_of_a_rank(). `timeout`: comm.timeout_s. `kept`: the step of the replica
  // from which the run goes on, 0: none; others are removed.
  // `communicator` and the transport outlive it.
  NeighbourCopies(Communicator& communicator, ReplicaPlaces places, std::vector<bool> files,
                  double timeout, uint64_t kept);
  // What is in flight is abandoned.
  ~NeighbourCopies();

  // [collective] Begins a replica of what `stage` fills in, which says the step. Waits until the
  // replica before is complete, and for `stage`. Errors: finish()'s.
  void start(const std::function<void(StagedState&)>& stage);
  // Throws what the replica in flight has failed with. For each step.
  void check() { task_.check(); }
  // Returns when this rank's part of the replica in flight is complete. kPeer; kIo, also where the
  // directory hangs.
  void finish();
  // [collective] Removes all replicas: the run goes on from an older state.
  void drop();
  // Of this rank's part.
  [[nodiscard]] uint64_t bytes() const;

 private:
  struct Job;
  [[nodiscard]] bool leads_host() const;

  Communicator& communicator_;
  std::shared_ptr<Job> job_;  // also the thread's
  uint64_t kept_;             // the step of the newest replica that all ranks have
  BackgroundTask task_;
};

}  // namespace gxp

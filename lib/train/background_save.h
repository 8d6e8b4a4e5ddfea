// Saves a run's checkpoints while it trains on. Each rank copies what it saves; a background thread
// writes the copy and a list of its pieces; rank 0's thread waits for all lists and publishes. The
// bits are those that save_state() would have saved. The same thread then exports the weights, if
// checkpoint.export asks for that (export_directory.h).
#pragma once

#include <memory>

#include "lib/train/replica/background_task.h"
#include "lib/train/training_state.h"

namespace gxp {

class Communicator;

// Threads: one. One checkpoint is in flight at a time, its export included.
class BackgroundSave {
 public:
  // `communicator` outlives it.
  BackgroundSave(Communicator& communicator, const RunConfig& config, KeyValues settings);

  // Takes the memory for the copies.
  void reserve(Trainer& trainer);
  // [collective] Begins to save the trainer's state. Waits until the save before is complete, and
  // for the copy. Errors: finish()'s.
  void start(Trainer& trainer);
  // Begins to export the checkpoint of `step`, which save_state() has just written; only if nothing
  // is in flight.
  void start_export(uint64_t step);
  // Throws what the save in flight has failed with: kIo, as save_state() and export_weights(). For
  // each step.
  void check() { task_.check(); }
  // [collective] Returns when no save is in flight: the last one is complete and durable. Errors:
  // check()'s; kPeer where another rank's failed; kIo if a save does nothing for 10 times
  // comm.timeout_s, as where a disk or a server hangs.
  void finish();

 private:
  struct Job;

  Communicator& communicator_;
  std::shared_ptr<Job> job_;  // the thread's while a save is in flight, even if this is gone
  BackgroundTask task_;       // at its end what is in flight is abandoned
};

}  // namespace gxp

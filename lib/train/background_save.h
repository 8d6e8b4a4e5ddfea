// Saves a run's checkpoints while it trains on. Each rank copies what it saves; a thread of its own
// writes the copy and leaves the lists of its pieces beside it; rank 0's thread waits for all lists
// and publishes. The bits are those that save_state() would have saved. The same thread then
// exports the weights, if checkpoint.export asks for that (export_directory.h).
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/collective/communicator.h"
#include "lib/train/training_state.h"

namespace gxp {

// Threads: one. One checkpoint is in flight at a time, its export included.
class BackgroundSave {
 public:
  // `communicator` and `config` outlive it.
  BackgroundSave(Communicator& communicator, const RunConfig& config, KeyValues settings)
      : communicator_(communicator), config_(config), settings_(std::move(settings)) {}
  // What is in flight is abandoned; the checkpoints before it stay.
  ~BackgroundSave() = default;

  // Takes the memory for the copies.
  void reserve(Trainer& trainer) { reserve_staging(trainer, staged_); }
  // [collective] Begins to save the trainer's state. Waits until the save before is complete, and
  // for the copy. Errors: finish()'s.
  void start(Trainer& trainer);
  // Begins to export the checkpoint of `step`, which save_state() has just written; only if nothing
  // is in flight.
  void start_export(uint64_t step);
  // Throws what the save in flight has failed with: kIo, as save_state() and export_weights(). For
  // each step.
  void check();
  // [collective] Returns when no save is in flight: the last one is complete and durable. Errors:
  // check()'s; kPeer where another rank's failed.
  void finish();

 private:
  using Work = std::function<void(const std::stop_token&)>;
  void launch(Work work);
  void write(const std::stop_token& stop, const std::string& save_id, double stall);
  // On rank 0. Returns the path, or "" if the run has ended before.
  std::string publish(const std::stop_token& stop, const std::string& save_id);
  void export_step(const std::stop_token& stop, uint64_t step);

  Communicator& communicator_;
  const RunConfig& config_;
  KeyValues settings_;
  StagedState staged_;       // the thread's while a save is in flight
  std::vector<bool> files_;  // files_of_a_rank()
  std::vector<std::string> names_;
  std::future<void> done_;  // valid while a save is in flight
  std::jthread thread_;     // the first to be destroyed
};

}  // namespace gxp

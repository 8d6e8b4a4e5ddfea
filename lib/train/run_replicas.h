// A run's replicas in memory (checkpoint.replica): what it resumes from, and when it makes them.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/train/replica/neighbour_copies.h"
#include "lib/train/training_state.h"

namespace gxp {

// Does nothing where checkpoint.replica is "none".
class RunReplicas {
 public:
  // All outlive it.
  RunReplicas(Trainer& trainer, Communicator& communicator, const RunConfig& config,
              const KeyValues& settings, const ReplicaPlaces& places)
      : trainer_(trainer),
        communicator_(communicator),
        config_(config),
        settings_(settings),
        places_(places) {}

  // [collective] Whether there is a replica, newer than the run's checkpoints if it may continue
  // from those: then the trainer continues from it. Errors: resume_replica()'s.
  bool resume(bool has_checkpoints);
  // [collective] After a step of training: begins a replica where one is due. Errors:
  // NeighbourCopies's.
  void note_step();
  // [collective] The run goes back to an older state.
  void drop();
  void finish();

 private:
  void start();

  Trainer& trainer_;
  Communicator& communicator_;
  const RunConfig& config_;
  const KeyValues& settings_;
  const ReplicaPlaces& places_;
  std::optional<NeighbourCopies> copies_;
  bool has_begun_ = false;
};

}  // namespace gxp

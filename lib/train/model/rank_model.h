// One rank's part of a run's model: the memory for it, the weights there, and the calls between the
// ranks. A Trainer changes the weights; evaluation.h and generation.h run the model forward.
#pragma once

#include "lib/collective/joined_device.h"
#include "lib/config/run_config.h"
#include "lib/train/step/backend.h"
#include "lib/zero/held_state.h"
#include "lib/zero/lanes.h"

namespace gxp {

struct RankModel {
  // [collective] All arguments outlive it. Errors: kConfig: some ranks have GPUs and others not;
  // kDevice.
  RankModel(const RunConfig& config, const RunPlan& plan, Communicator& communicator,
            Backend& backend);

  // Seeded initial weights, or those of model.init if it names a file. Every rank makes the same.
  void initialise_weights();

  const RunConfig& config;
  Backend& backend;
  const RunPlan& plan;
  const JoinedDevice joined;
  const LaneWatch watch;  // a failed call ends what waits for the device
  ShardedMemory sharded;
  Parameters parameters;
  HeldState state;
};

}  // namespace gxp

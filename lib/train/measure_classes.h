// Where the time of a run's step goes, by class of kernels, as lib/replay/gpu_time.h predicts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/config/run_config.h"
#include "lib/train/step/backend.h"
#include "lib/train/timed_ops.h"

namespace gxp {

class Communicator;

struct ClassMeasurement {
  ClassSeconds of_classes;   // the median step among those with marks
  double step_seconds = 0;   // of that step
  double plain_seconds = 0;  // the median step before them, which runs like a step of the run
  std::string graphs;        // "on", "off": CUDA graphs in the plain steps; "": they are on the CPU
  uint64_t tokens = 0;       // of a step, all ranks
  std::optional<double> mfu;  // of a plain step; see peak_rate()
  std::string mfu_of;         // the meaning of peak_flops
  std::string device;         // what computes
};

// [collective] Takes the first steps of a run, from new weights or those of model.init, and keeps
// nothing: three to warm up, three plain ones, and three with marks around each call and without
// CUDA graphs, which have no marks inside. `backend.ops` become TimedOps. Errors: Trainer's.
ClassMeasurement measure_classes(const RunConfig& config, Communicator& communicator,
                                 Backend& backend);

}  // namespace gxp

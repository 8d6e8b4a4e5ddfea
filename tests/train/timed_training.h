// Training with marks around every operation.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lib/replay/gpu_time.h"
#include "lib/train/timed_ops.h"
#include "tests/train/golden.h"

namespace gxp {

struct TimedTraining {
  Trained trained;
  std::set<std::string_view> measured;  // classes that took time in the last step
  double classes_seconds = 0;           // of the last step
  double step_seconds = 0;
};

// All steps of a run on one rank.
inline TimedTraining train_timed(const RunConfig& config, Backend backend, int steps) {
  auto timed = std::make_unique<TimedOps>(std::move(backend.ops));
  TimedOps& times = *timed;
  backend.ops = std::move(timed);
  return run_ranks(1, [&](Communicator& communicator) {
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    trainer.runner().observe(&times);
    TimedTraining found;
    while (trainer.steps_done() < steps) {
      found.trained.steps.push_back(trainer.step(false));
      const ClassSeconds seconds = times.take();
      found.step_seconds = found.trained.steps.back().seconds;
      found.classes_seconds = seconds.sum();
      found.measured.clear();
      for (size_t i = 0; i < seconds.classes.size(); ++i)
        if (seconds.classes[i] > 0) found.measured.insert(kKernelClassNames[i]);
    }
    found.trained.weights = weights_of(trainer, communicator);
    return found;
  })[0];
}

// Those of a run on one rank.
inline std::set<std::string_view> predicted_classes(const RunConfig& config) {
  std::set<std::string_view> names;
  for (const ClassTime& each : time_by_class(plan_run(config, 1), find_gpu("h200")).classes)
    names.insert(kKernelClassNames[size_t(each.of)]);
  return names;
}

}  // namespace gxp

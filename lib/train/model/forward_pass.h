// A forward program over a rank's model (build_forward() in lib/program/build.h), between steps.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/model/model.h"
#include "lib/train/model/rank_model.h"
#include "lib/train/step/program_runner.h"
#include "lib/train/step/unit_binding.h"

namespace gxp {

// Shares the model's parameters, and its arena if that is large enough; all that it needs besides
// is allocated in the constructor. Parameters::publish() comes before the first run().
//   Threads  one at a time; `fill` and `finish` are called on the compute lane's.
class ForwardPass {
 public:
  // `model` outlives it. `past`, by unit, gets the keys and values of blocks and outlives it, too;
  // null: they are not cached.
  ForwardPass(RankModel& model, const StepShape& shape, StepProgram program,
              const std::vector<KeyValueCache>* past = nullptr);

  // [collective] where ranks hold shards of parameters.
  void run() { runner_.run(Deadline::after(kComputeTimeout)); }
  [[nodiscard]] const StepShape& shape() const { return shape_; }

  // Set before each run: what fills a batch, on the host; what is done with the head's tensors; and
  // the position of a row's first token.
  FillBatch fill;
  std::function<void(const UnitTensors& head)> finish;
  size_t first = 0;

 private:
  std::function<void()> bind(const Op& op);

  RankModel& rank_;
  const std::vector<KeyValueCache>* const past_;
  const StepShape shape_;
  const StepProgram program_;
  ProgramMemory memory_;
  const std::unique_ptr<Model> model_;
  ProgramRunner runner_;
};

}  // namespace gxp

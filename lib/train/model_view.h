// A run that makes no steps: the loss of data.valid, and generated text.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/ckpt/named_tensors.h"
#include "lib/train/model/evaluation.h"
#include "lib/train/model/generation.h"

namespace gxp {

class Communicator;

struct ViewRequest {
  bool evaluate = false;
  GenerationRequest generation = {};
  bool resume = false;  // the weights of the newest checkpoint in checkpoint.dir; else model.init
  KeyValues settings = {};  // the run's settings, flattened
};

struct ModelView {
  std::optional<EvaluatedLoss> loss;  // if it was requested
  std::optional<uint64_t> step;       // of the checkpoint
  size_t parameters = 0;
  Tokens generated = {};  // with the prompt. Rank 0 only
};

// [collective] Writes no file and takes no lock. The device has the memory of plan_evaluation().
// Errors: Dataset's, RankModel's, load_newest_weights() and those of model.init.
ModelView view_model(const RunConfig& config, Communicator& communicator, Backend& backend,
                     const ViewRequest& request);

}  // namespace gxp

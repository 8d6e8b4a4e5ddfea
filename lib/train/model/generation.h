// Text from a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/train/model/rank_model.h"
#include "lib/train/model/sampling.h"

namespace gxp {

using Tokens = std::vector<int32_t>;

struct GenerationRequest {
  Tokens prompt = {};  // not empty, and at most model.context tokens
  int count = 0;       // at most so many tokens follow it; 0: nothing is generated
  Sampling sampling = {};
  uint64_t seed = 0;
  std::vector<Tokens> stops = {};  // generation ends with the first of these that comes
  // Gets the prompt's tokens, then each token as it is drawn, on rank 0; may be left out.
  std::function<void(int32_t token)> emit = {};
  std::function<void()> finish = {};  // likewise, at the end
};

// [collective] if the memory is sharded; else a rank calls it for itself. Returns the prompt and
// what follows it. Generation also ends, with a warning, when the model has seen model.context tokens.
//   Cost  a pass over the prompt, then one over a position for each token: keys and values of all
//         earlier positions are kept, on the device.
Tokens generate(RankModel& model, const GenerationRequest& request);

}  // namespace gxp

// train.global_batch: the rows of a step, whatever the number of ranks.
#pragma once

#include "lib/config/run_config.h"

namespace gxp {

// The run with train.grad_accum as train.global_batch wants it on so many ranks; as it is where that
// is 0. Call once. kConfig: train.grad_accum is given as well; or the ranks' micro-batches do not
// divide the global batch: the message has the nearest values.
RunConfig with_global_batch(RunConfig run, int world_size);

}  // namespace gxp

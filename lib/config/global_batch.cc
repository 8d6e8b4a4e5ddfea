#include "lib/config/global_batch.h"

#include "lib/base/error.h"

namespace gxp {

RunConfig with_global_batch(RunConfig run, int world_size) {
  const int64_t wanted = run.train.global_batch;
  if (wanted == 0) return run;
  if (run.train.grad_accum != 1)
    fail(ErrorKind::kConfig,
         "train.grad_accum {}: train.global_batch {} decides it; leave one of them out",
         run.train.grad_accum, wanted);
  const int64_t together = int64_t{run.train.micro_batch} * world_size;
  const int64_t below = wanted / together * together;
  if (below == wanted) {
    run.train.grad_accum = int(wanted / together);
    return run;
  }
  const std::string nearest =
      below == 0 ? fmt::format("the nearest is {}", together)
                 : fmt::format("the nearest are {} and {}", below, below + together);
  fail(
      ErrorKind::kConfig,
      "train.global_batch {}: it must be a multiple of train.micro_batch x ranks, {} x {} = {}; {}",
      wanted, run.train.micro_batch, world_size, together, nearest);
}

}  // namespace gxp

#include "lib/train/run_replicas.h"

#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/collective/communicator.h"

namespace gxp {

bool RunReplicas::resume(bool has_checkpoints) {
  if (config_.checkpoint.replica == ReplicaPlace::kNone) return false;
  const std::vector<uint64_t> steps =
      has_checkpoints ? complete_steps(config_.checkpoint.dir) : std::vector<uint64_t>{};
  const uint64_t saved = steps.empty() ? 0 : steps.back();
  const auto found = find_replica(places_.directory, places_.ranks_per_host, saved, communicator_);
  if (found) resume_replica(trainer_, communicator_, config_, settings_, *found);
  copies_.emplace(communicator_, places_, files_of_a_rank(trainer_.architecture()),
                  config_.comm.timeout_s, found ? uint64_t(trainer_.steps_done()) : 0);
  return found.has_value();
}

// In the first step of an attempt, too: the hosts may be others.
void RunReplicas::note_step() {
  if (!copies_) return;
  copies_->check();
  const int64_t step = trainer_.steps_done();
  if (step < config_.train.steps && (!has_begun_ || step % config_.checkpoint.replica_every == 0))
    start();
}

void RunReplicas::start() {
  const auto begin = Deadline::Clock::now();
  copies_->start([&](StagedState& staged) {
    stage_state(trainer_, checkpoint_info(trainer_, communicator_.world_size(), config_, settings_),
                staged);
  });
  if (!has_begun_ && communicator_.rank() == 0)
    log_info("replicas every {} steps: {} of this rank, in {}{}; training waited {:.1f} ms",
             config_.checkpoint.replica_every, format_bytes(copies_->bytes()), places_.directory,
             places_.transport == nullptr ? "" : " and on the next host",
             1e3 * seconds_since(begin));
  has_begun_ = true;
}

void RunReplicas::drop() {
  if (copies_) copies_->drop();
}

void RunReplicas::finish() {
  if (copies_) copies_->finish();
}

}  // namespace gxp

// One rank's training: parameters, gradients and optimizer state on a device, and the step that
// changes them. Logging, saving, validating and stopping are the caller's (run.h).
//
//   Order     construct; load or initialise the weights; step() and the others as often as wanted.
//   Ranks     every rank calls the same functions in the same order; those marked [collective]
//             wait for the others.
//   Threads   one at a time.
//   Errors    kPeer, kDevice: a rank or a device failed. kMismatch: the loss or a gradient is not
//             finite; the weights are those of the step before. kIo, kCorrupt: the data.
//   Program   the run's plan (run_plan.h), with which memcalc and shard-plan predict, is what runs.
//             Each operation is carried out by the part that bind() names for its kind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/data/data_order.h"
#include "lib/train/model/evaluation.h"
#include "lib/train/model/rank_model.h"
#include "lib/train/run_data.h"
#include "lib/train/step/clipping.h"
#include "lib/train/step/forward_backward.h"
#include "lib/train/step/program_runner.h"
#include "lib/train/step/weight_update.h"

namespace gxp {

class Trainer {
 public:
  // [collective]
  Trainer(const RunConfig& config, Communicator& communicator, Backend& backend)
      : Trainer(config, communicator, backend, open_data(config)) {}
  // [collective] On these data, instead of what the settings name.
  Trainer(const RunConfig& config, Communicator& communicator, Backend& backend, RunData data);

  // As RankModel's.
  void initialise_weights() { model_.initialise_weights(); }
  // Continues after `steps` optimizer steps that consumed `samples` samples of the data order.
  void continue_from(int64_t steps, uint64_t samples);

  // [collective] One optimizer step. Any rank may request a stop; all learn of it in this step's
  // result.
  StepResult step(bool requests_stop);
  // [collective] The loss of train.valid_batches micro-batches per rank of data.valid; only if
  // has_validation().
  double validate() { return evaluate(model_, *data_.valid, config_.train.valid_batches).mean(); }
  [[nodiscard]] bool has_validation() const { return data_.valid != nullptr; }
  // Fingerprints of the files of data.train, as this rank reads them.
  [[nodiscard]] const std::vector<DataFingerprint>& train_data() const { return train_data_; }
  // Likewise of data.valid; only if has_validation().
  [[nodiscard]] std::vector<DataFingerprint> valid_data() const {
    return data_.valid->fingerprints();
  }
  // From now on a GPU's kernels are recorded as CUDA graphs, one for each operation that launches
  // the same kernels in every step; the bits do not change. Before the first step.
  void record_graphs(WithoutRecording otherwise);
  // `note` is called in each step, before and after this rank waits for its data. Before the first.
  void note_data(std::function<void(bool waits)> note) { running_.notes_data = std::move(note); }

  [[nodiscard]] RankModel& model() { return model_; }
  // The weights and the optimizer state that this rank holds.
  [[nodiscard]] HeldState& state() { return model_.state; }
  [[nodiscard]] const ShardedMemory& memory() const { return model_.sharded; }
  [[nodiscard]] const OffloadedMemory& offloaded() const { return model_.sharded.offloaded; }
  [[nodiscard]] bool is_sharded() const {
    return model_.sharded.is_sharded();
  }  // state() is a shard
  [[nodiscard]] Clipping& clipping() { return clipping_; }
  // Runs the program of a step.
  [[nodiscard]] ProgramRunner& runner() { return runner_; }
  [[nodiscard]] const ProgramRunner& runner() const { return runner_; }
  [[nodiscard]] const StepProgram& program() const { return plan_.step.program; }

  [[nodiscard]] int64_t steps_done() const { return model_.sharded.steps; }
  [[nodiscard]] uint64_t samples_consumed() const { return samples_; }
  // Of samples_consumed(); see DataOrder::epochs().
  [[nodiscard]] std::vector<double> epochs() const { return order_.epochs(samples_); }
  [[nodiscard]] uint64_t samples_per_step() const;  // on all ranks
  [[nodiscard]] const Architecture& architecture() const { return plan_.architecture; }
  [[nodiscard]] size_t positions() const { return plan_.shape.positions; }
  // Whether the ranks' collectives work on the devices' own memory; if not, why not.
  [[nodiscard]] const Support& device_collectives() const { return model_.joined.support(); }

 private:
  std::function<void()> bind(const Op& op);
  std::function<void()> bind_offload(const Op& op);

  const RunConfig config_;
  Backend& backend_;
  const RunPlan plan_;
  const RunData data_;
  const std::vector<DataFingerprint> train_data_;
  const DataOrder order_;
  RankModel model_;
  RunningStep running_;
  uint64_t samples_ = 0;
  ForwardBackward forward_backward_;
  Clipping clipping_;
  WeightUpdate update_;
  ProgramRunner runner_;  // the first to be destroyed: it uses the others
};

}  // namespace gxp

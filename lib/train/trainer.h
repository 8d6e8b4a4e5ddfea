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
//
// The bodies: trainer.cc the step and the operations of forward and backward; trainer_gradients.cc
// sums and the norm; trainer_clip.cc clipping and the loss scale; trainer_update.cc the optimizer;
// trainer_state.cc what checkpoints and weight files read and write; trainer_offload.cc what lies
// beside the device; trainer_forward.cc validation and generated text.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/collective/communicator.h"
#include "lib/config/run_config.h"
#include "lib/data/batch_loader.h"
#include "lib/data/dataset.h"
#include "lib/device/mirror.h"
#include "lib/model/model.h"
#include "lib/optim/loss_scaler.h"
#include "lib/optim/optimizer.h"
#include "lib/program/run_plan.h"
#include "lib/train/backend.h"
#include "lib/train/program_runner.h"
#include "lib/train/unit_binding.h"
#include "lib/train/weight_rounding.h"
#include "lib/zero/device_calls.h"
#include "lib/zero/flat_tensors.h"
#include "lib/zero/offload/offloaded_memory.h"
#include "lib/zero/program_memory.h"

namespace gxp {

struct StepResult {
  int64_t step = 0;      // from 1
  double loss = 0;       // mean over all tokens of the step, on all ranks
  double grad_norm = 0;  // before clipping
  double lr = 0;
  double loss_scale = 1;  // that gradients were scaled by; 1 but for fp16
  bool skipped = false;   // fp16: gradients overflowed, nothing was updated
  uint64_t tokens = 0;    // of the step, on all ranks
  double seconds = 0;
  double comm_seconds = 0;                // in which this rank's comm lane was busy
  double update_seconds = 0;              // from the decision on clipping to the step's end
  double offload_seconds = 0;             // in which this rank's offload lane was busy
  uint64_t offload_bytes = 0;             // that it fetched and stored
  uint64_t wire_bytes = 0;                // that this rank sent
  uint64_t wire_bytes_between_hosts = 0;  // of them, to other hosts
  bool stop_wished = false;               // by any rank
};

// Elements of one of the trainer's f32 buffers, on the device or beside it.
struct HeldRange {
  BufferId buffer = kNoBuffer;
  Range elements;
};

// What a rank holds of one logical tensor: all of it, or the part in its shard. Flat, f32; weights
// are the master weights where the model reads rounded ones.
struct StateTensor {
  const TensorSpec* spec = nullptr;
  Range elements;  // of the tensor
  HeldRange weight_at;
  Tensor weight;  // empty where some of it is offloaded
  // In the order of OptimizerSpec::kept, of the same elements; empty where none is kept, every
  // rank holds all, or some is offloaded.
  std::vector<Tensor> optimizer;
  // The last step's gradient, summed over the ranks, not clipped, times the step's loss_scale, in
  // the type in which gradients are kept. Empty for a frozen tensor.
  Tensor gradient;
};

// What a rank holds of one kind of optimizer state of one tensor.
struct KeptTensor {
  const TensorSpec* spec = nullptr;
  const KeptState* state = nullptr;
  std::vector<size_t> shape;  // of all of it
  Range elements;             // of that
  HeldRange at;
  bool everywhere = false;  // every rank holds these elements
};

class Trainer {
 public:
  // [collective]
  Trainer(const RunConfig& config, Communicator& communicator, Backend& backend);
  ~Trainer();

  // Seeded initial weights, or those of model.init if it names a file. Every rank makes the same.
  void initialise_weights();
  // What this rank holds, in forward order, to be read or overwritten between steps: every tensor,
  // or its shard of each. All ranks together hold all.
  [[nodiscard]] std::vector<StateTensor> state();
  // The optimizer state, likewise.
  [[nodiscard]] std::vector<KeptTensor> kept_state();
  // What these name, wherever it lies; between steps.
  void read(const HeldRange& held, Memory out);
  void write(const HeldRange& held, ConstMemory in);
  // Has `fill` write the weights of each tensor of state(), wherever they lie.
  void fill_weights(const std::function<void(const StateTensor&, const Tensor& weight)>& fill);
  [[nodiscard]] const OffloadedMemory& offloaded() const { return *offloaded_; }
  // Whether state() is a shard.
  [[nodiscard]] bool is_sharded() const { return plan_.step.program.optimizer_shards > 1; }
  // The elements of a state() tensor of `count` for which this rank stands: the ranks that hold the
  // same share them out.
  [[nodiscard]] Range own_share(size_t count) const;
  // Continues after `steps` optimizer steps that consumed `samples` samples of the data order.
  void continue_from(int64_t steps, uint64_t samples);

  // What else a checkpoint keeps: the state of the loss scale. Empty but for fp16.
  [[nodiscard]] KeyValues scaling() const;
  // Goes on with it; what is missing (the checkpoint of a run without) starts anew.
  void continue_scaling(const KeyValues& saved);

  // [collective] One optimizer step. Any rank may wish to stop; all learn of it in this step's
  // result.
  StepResult step(bool wish_to_stop);
  // [collective] Mean loss per token over data.valid, train.valid_batches micro-batches per rank.
  double validate();
  // [collective] The largest `value` of any rank.
  double largest(double value);
  // [collective] if is_sharded(). `tokens` continued by `count` tokens, drawn by softmax(logits /
  // temperature), seeded.
  std::vector<int32_t> generate(std::vector<int32_t> tokens, int count, double temperature);

  // The program of a step, and by OpId the seconds that each operation took in the last one.
  [[nodiscard]] const StepProgram& program() const { return plan_.step.program; }
  [[nodiscard]] const std::vector<double>& op_seconds() const { return runner_->seconds(); }
  // From now on the kernels of each operation are waited for, so that these seconds are theirs.
  void finish_each_op() { runner_->finish_each(); }
  // From now on a GPU's kernels are recorded as CUDA graphs, one for each operation that starts the
  // same ones in every step; the bits stay as they are. Before the first step.
  void record_graphs();
  // How many operations of the last step were such graphs.
  [[nodiscard]] int graphs_launched() const { return runner_->repeated_count(); }

  [[nodiscard]] int64_t steps_done() const { return step_; }
  [[nodiscard]] int64_t steps_skipped() const { return skipped_; }  // of those done
  [[nodiscard]] uint64_t samples_consumed() const { return samples_; }
  [[nodiscard]] const Architecture& architecture() const { return plan_.architecture; }
  [[nodiscard]] size_t positions() const { return plan_.shape.positions; }
  [[nodiscard]] bool has_validation() const { return valid_ != nullptr; }

 private:
  // A program with its memory and runner.
  struct Pass;

  void run_op(const Op& op, const UnitTensors& tensors);
  void run_comm(const Op& op);
  void gather(const StepProgram& program, const ProgramMemory& memory, const Op& op);
  void round_parameters(int wrap);
  void publish_parameters();
  [[nodiscard]] FlatShards gradients() const;
  void reduce_bucket(const Op& op);
  void scatter_gradients(const Op& op);
  void add_gradients(const Op& op);
  void measure();
  [[nodiscard]] size_t place_of_norm_part(size_t part) const;
  [[noreturn]] void fail_non_finite();
  void finish_loss(const Op& op, const UnitTensors& tensors);
  void clip();
  std::function<void()> bind_update(const Op& op);
  std::function<void()> bind_offload(const Op& op);
  UpdateRange range_in(const Op& op, size_t own_part, const Range& elements);
  [[nodiscard]] Tensor own_parameters(int wrap) const;
  void round_offloaded();
  void prepare_update(const Op& op);
  void gather_directions(const Op& op);
  void update_whole(const Op& op);
  [[nodiscard]] const TensorSpec& spec_of(const TensorPart& part) const;
  [[nodiscard]] bool sees_whole(const TensorPart& part) const;
  [[nodiscard]] UpdateStep update_step() const;
  // act(tensor, its direction) for what this rank holds of the tensors of op's unit seen whole.
  template <class Act>
  void for_own_whole(const Op& op, Act act);
  void transform(size_t tensor, const Tensor& direction, Memory workspace, const UpdateStep& step);
  [[nodiscard]] Tensor kept_of(size_t state, size_t place) const;
  std::function<void()> bind_train(const Op& op);
  std::function<void()> bind_next_batch(const Op& op);
  std::unique_ptr<Pass> make_forward(const StepShape& shape, StepProgram program);
  std::function<void()> bind_forward(const Pass& pass, const Op& op);
  Memory flat(BufferId buffer) const;
  [[nodiscard]] Stream& compute() const;
  void finish_compute() const;
  [[nodiscard]] Tensor losses_of(int micro) const;
  Communicator& members(RankGroup group);
  [[nodiscard]] Tensor own_part(const Tensor& wrap, int shards) const;
  [[nodiscard]] uint64_t tokens_per_step() const;

  const RunConfig config_;
  Communicator& communicator_;
  Backend& backend_;
  const RunPlan plan_;
  const RankGroups groups_;
  std::unique_ptr<Communicator> shard_group_;    // null: all ranks
  std::unique_ptr<Communicator> replica_group_;  // null: this rank alone
  std::unique_ptr<Model> model_;
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Dataset> valid_;  // none without data.valid
  std::unique_ptr<BatchLoader> loader_;
  Optimizer optimizer_;
  const WeightRounding rounding_;
  const WeightRounding host_rounding_;
  DeviceCalls calls_;
  std::vector<std::vector<TensorPart>> norm_parts_;
  std::vector<TensorPart> own_parts_;            // of the optimizer's tensors
  std::vector<TensorPart> all_parts_;            // every tensor whole
  std::vector<std::vector<Range>> kept_places_;  // by kind of state; of own or of all parts
  std::unique_ptr<ProgramMemory> memory_;
  std::unique_ptr<OffloadedMemory> offloaded_;
  std::unique_ptr<ProgramRunner> runner_;

  std::optional<LossScaler> scaler_;  // of fp16
  int64_t step_ = 0;
  int64_t skipped_ = 0;
  uint64_t samples_ = 0;
  Mirror loss_sum_;    // of the program's buffer
  Mirror norm_sums_;   // of its norm_parts
  Buffer all_losses_;  // of the step's micro-batches, on the host
  // Written by the operations of the running step, read after it.
  StepResult result_;
  double gradient_factor_ = 1;  // clipping, and the loss scale undone
  bool stale_ = false;          // weights outside this rank's shard are those of the step before
  bool unrounded_ = false;      // offloaded master weights were changed between steps
  bool wish_to_stop_ = false;
  std::chrono::steady_clock::time_point clipped_at_;
};

}  // namespace gxp

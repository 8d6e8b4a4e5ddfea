// How the parameters that the model reads come from the weights that the optimizer changes: f32
// master weights are rounded to a half type, and ranks gather the parts that others hold or update.
// Which operations do that, and when: lib/program/parameter_writer.h.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/ops.h"
#include "lib/config/run_config.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

// The seed of a tensor's random bits: mix64(key + step) is the key of its weights in a step.
uint64_t rounding_key(uint64_t seed, const TensorSpec& tensor);

// Elements of one tensor that are rounded together.
struct RoundedPart {
  Tensor to;
  ConstTensor from;
  const TensorSpec* tensor = nullptr;
  size_t first = 0;  // of the tensor's elements
};

//   Threads  one at a time. The functions that are returned run on the lane of their operation.
class Parameters {
 public:
  // `ops` of the compute lane; `host_ops` for the host's memory. All but `train` outlive it.
  Parameters(ShardedMemory& sharded, Ops& ops, Ops& host_ops, const TrainConfig& train);

  // Returns the function that carries out an operation of the step.
  std::function<void()> bind(const Op& op);
  // `op` is of `program`, the step or another over the same model, whose memory is `memory`.
  std::function<void()> bind_gather(const Op& op, const StepProgram& program,
                                    const ProgramMemory& memory);
  // to = from, for step `step` (from 1), on the compute lane. The bits depend on tensor, elements,
  // step and settings alone, however a tensor is cut. Frozen ones are rounded to nearest.
  void round(const RoundedPart& part, int64_t step) const { round_with(ops_, part, step); }
  // This rank's shard of an FSDP unit's parameters, as the optimizer is sharded.
  [[nodiscard]] Tensor own(int wrap) const;

  // Between steps, for the next one: rounds part.from, which is on the host, into own(wrap) from
  // element `first` on. read() is the reverse, without a loss.
  void write(int wrap, size_t first, RoundedPart part);
  void read(int wrap, size_t first, const Tensor& to) const;
  // An update has changed the weights: parameters outside of own() are those of the step before.
  void set_updated() { stale_ = true; }
  // [collective] Between steps: makes the parameters those that the next step begins with.
  void publish();
  // [collective] Between steps: the same of frozen parameters, once after they were written; a step
  // does not publish them.
  void publish_frozen();

 private:
  std::function<void()> bind_round(const Op& op);
  void gather_frozen(int wrap, RankGroup group);
  // The persistent buffer's part of an FSDP unit, and the place of own() in that part.
  [[nodiscard]] Tensor persistent(int wrap) const;
  [[nodiscard]] Range own_in_persistent(int wrap) const;
  // The place of own() in the persistent buffer, which may be offloaded.
  [[nodiscard]] size_t own_begin(int wrap) const;
  void round_with(Ops& ops, const RoundedPart& part, int64_t step) const;

  ShardedMemory& sharded_;
  Ops& ops_;
  Ops& host_ops_;
  const bool is_stochastic_;
  const uint64_t seed_;
  bool stale_ = true;
  bool frozen_are_stale_ = true;
};

}  // namespace gxp

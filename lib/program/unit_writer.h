// Writes a micro-batch's way through the model's units: the batch, each unit's forward, the loss,
// and each unit's backward; with the activations that live between them. A unit's `saved` list has
// the activations that forward stores for backward:
//
//   forward     writes all of `saved`; tensors that it does not keep (recompute.h) are workspace
//   recompute   reads the kept tensors and recomputes the others
//   backward    reads all, and may work in place
//
//   Order   for each micro-batch: next_batch(); forward() of the units in order; loss() or
//           evaluate() of the head; then recompute() and backward() of the units in reverse.
#pragma once

#include <vector>

#include "lib/program/gradient_writer.h"
#include "lib/program/parameter_writer.h"

namespace gxp {

// The writers that a unit uses.
struct UnitWriters {
  ProgramWriter& writer;
  ParameterWriter& parameters;
  GradientWriter& gradients;
};

class UnitWriter {
 public:
  // `recompute`: by unit.
  UnitWriter(const UnitWriters& writers, const StepInputs& inputs,
             std::vector<Recompute> recompute);

  void next_batch(int micro);
  void forward(int unit, int micro);
  // Recomputes what the unit's forward has not kept; emits nothing if it has kept all.
  void recompute(int unit, int micro);
  // The head's forward and backward in one operation, so that logits are neither kept nor computed
  // twice.
  void loss(int unit, int micro);
  // The sum of the loss over the ranks.
  void reduce_loss();
  void backward(int unit, int micro);
  // The head without a backward: `kind` is kEvaluateLoss or kLogits.
  void evaluate(OpKind kind, int unit);

 private:
  [[nodiscard]] Recompute recompute_of(int unit) const { return recompute_[size_t(unit)]; }
  Op& emit(OpKind kind, int unit, int micro);
  BufferId make_stream(const std::string& name);
  // Notes what `op` reads of the residual stream: the tokens, or what the unit before has left.
  void read_input(Op& op);
  // Notes where the rows' documents begin, if they hold some and the unit's positions matter.
  void use_documents(Op& op);
  // Notes what the head's `op` reads besides: targets and losses.
  void use_head_inputs(Op& op);
  void write_stream_gradient(Op& op);
  // The codes of a block's matrices, if they are kept: the step's first forward pass makes them.
  void use_codes(Op& op);
  // The places of its operands' largest values, where products are in 8 bits: forward makes them.
  void use_largest(Op& op);
  void save(Op& op);
  void save_again(Op& op);
  void use_saved(Op& op);
  void use_scratch(Op& op, const std::vector<ActivationSpec>& specs);
  BufferId make(const UnitSpec& unit, const ActivationSpec& spec, MemoryKind kind);

  ProgramWriter& writer_;
  ParameterWriter& parameters_;
  GradientWriter& gradients_;
  const StepInputs& inputs_;
  const std::vector<Recompute> recompute_;
  BufferId tokens_ = kNoBuffer;
  BufferId targets_ = kNoBuffer;
  BufferId document_begin_ = kNoBuffer;
  BufferId stream_gradient_ = kNoBuffer;
  std::vector<BufferId> codes_;               // by unit
  std::vector<BufferId> largest_;             // by unit
  std::vector<BufferId> stream_;              // the residual stream after each unit
  std::vector<std::vector<BufferId>> saved_;  // by unit
};

}  // namespace gxp

// Writes how a step's gradients come together. Three types may differ:
//
//   written   by backward: f32, in a buffer of the FSDP unit's own or in the persistent buffer
//   kept      accumulated over micro-batches, and read by the optimizer (StepShape::gradients): the
//             persistent buffer
//   reduced   sent between ranks (StepShape::reduced): the message
//
// The message is the sum of this rank's micro-batches: those before the last as they are kept, the
// last as it was written, rounded once to the message's type. The bits are therefore the same
// whether a strategy keeps whole gradients or shards. Where two of the three types agree they share
// memory.
//
//   Order   use() for each operation of an FSDP unit's units that makes gradients; complete();
//           then, if departs(), scatter() where the optimizer is sharded, else reduce() for each
//           bucket whose last FSDP unit is complete.
#pragma once

#include <vector>

#include "lib/program/program_writer.h"
#include "lib/program/step_inputs.h"

namespace gxp {

class GradientWriter {
 public:
  GradientWriter(ProgramWriter& writer, const StepInputs& inputs);

  // Makes the persistent buffer; once the program knows its optimizer_shards.
  void make_buffer();

  // Gradients that are reduced together if the optimizer is not sharded.
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  // Whether gradients are reduced after this micro-batch: the last, or each where only shards are
  // kept.
  [[nodiscard]] bool departs(int micro) const;

  // Notes that `op` makes the gradients of `unit`, and of the unit that it borrows from.
  void use(Op& op, int unit);
  // The FSDP unit's gradients of this micro-batch are written: they are added to those before them,
  // and brought to where they are kept or to the message.
  void complete(int wrap, int micro);
  // The FSDP unit's sum goes to the shards of a group, then over their replicas.
  void scatter(int wrap, int micro);
  // The bucket's sum over all ranks.
  void reduce(int bucket);

 private:
  // Emits target = earlier + added, or target = added without `earlier`.
  struct Sum {
    FlatView target, added;
    FlatView earlier = {};
  };

  [[nodiscard]] bool holds_whole() const { return writer_.program.gradient_shards == 1; }
  // The FSDP unit's place in the persistent buffer of whole gradients.
  [[nodiscard]] FlatView kept(int wrap) const;
  // The location of the FSDP unit's message, and of a bucket's; the buffer is made at the first
  // call.
  FlatView message_of(int wrap);
  FlatView message_of_bucket(size_t index);
  FlatView make_wrap_buffer(int wrap, DType dtype);
  // Where backward writes the FSDP unit's gradients.
  FlatView open(int wrap, int micro);
  FlatView write(Op& op, const UnitPart& part);
  void add_in_pairs(int wrap, int micro, const FlatView& written);
  void add(int wrap, int micro, const Sum& sum);
  // Marks the sum as compressed between hosts where that is asked for; `flat`: of the gradients.
  void compress(Op& op, const Range& flat);
  void reduce_wrap(int wrap, int micro, RankGroup group, const FlatView& message);

  ProgramWriter& writer_;
  const StepInputs& inputs_;
  const StepShape& shape_;
  const std::vector<Bucket> buckets_;
  // Without a buffer where nothing is written yet.
  std::vector<FlatView> bucket_messages_;       // by bucket
  std::vector<FlatView> written_;               // by FSDP unit, of this micro-batch
  std::vector<FlatView> messages_;              // by FSDP unit
  std::vector<std::vector<FlatView>> earlier_;  // by FSDP unit: sums of earlier micro-batches
};

}  // namespace gxp

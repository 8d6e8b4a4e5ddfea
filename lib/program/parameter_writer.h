// Writes the locations of a step's parameters and the operations that bring them there:
//
//   round     this rank's parameters of a half type, from its f32 master weights; frozen ones have
//             none
//   publish   where a rank holds more parameters than it updates: the others' parts, from the ranks
//             that updated them in the step before; none of frozen ones (Parameters::publish_frozen)
//   need      where ranks hold shards of the parameters, or offload them: an FSDP unit's, gathered
//             or fetched into a buffer of its own; otherwise nothing
//   release   that buffer is not read any more
//
// A unit may use its parameters between need() and release() of its FSDP unit.
#pragma once

#include <vector>

#include "lib/program/offload_writer.h"

namespace gxp {

class ParameterWriter {
 public:
  // Makes the buffer of the parameters.
  ParameterWriter(ProgramWriter& writer, const StepInputs& inputs, OffloadWriter& offload);

  // Rounds at the start of a step, so that master weights may be changed between steps. Offloaded
  // master weights are rounded as they are updated instead; they would be fetched once more here.
  void round(int wrap);
  void publish(int wrap);
  void need(int wrap);
  void release(int wrap);

  // Notes that `op` reads the parameters of `unit`, and of the unit that it borrows from.
  void use(Op& op, int unit);

 private:
  // Whether an FSDP unit's parameters are brought together for each use.
  [[nodiscard]] bool gathers() const;
  void gather(int wrap);
  Op& emit_gather(int wrap, RankGroup group);
  void publish_among(int wrap, RankGroup group);
  FlatView read(Op& op, const UnitPart& part);
  // This rank's part of the persistent buffer.
  [[nodiscard]] Range own_shard(int wrap) const;
  // Records that `op` writes all parameters of its FSDP unit at their current location.
  void write_wrap(Op& op);

  ProgramWriter& writer_;
  const StepInputs& inputs_;
  OffloadWriter& offload_;
  std::vector<FlatView> places_;  // by FSDP unit; no buffer: not gathered
};

}  // namespace gxp

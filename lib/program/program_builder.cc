#include "lib/program/program_builder.h"

#include <utility>

namespace gxp {

ProgramBuilder::ProgramBuilder(const StepInputs& step_inputs, std::vector<Recompute> recompute)
    : inputs(step_inputs),
      offload(writer, inputs),
      parameters(writer, inputs, offload),
      gradients(writer, inputs),
      units({writer, parameters, gradients}, inputs, std::move(recompute)),
      update(writer, inputs, offload) {
  writer.program.groups = inputs.groups;
}

void ProgramBuilder::make_train_buffers() {
  writer.program.optimizer_shards = inputs.optimizer_shards();
  gradients.make_buffer();
  update.make_buffers();
}

StepProgram ProgramBuilder::finish() && {
  place_buffers(writer.program);
  derive_order(writer.program);
  return std::move(writer.program);
}

}  // namespace gxp

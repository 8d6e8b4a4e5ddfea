// The writers of one step program, each of which owns one aspect of it. The caller (build.cc) calls
// them in the order of the step; each call appends operations, and what they touch follows from the
// model's units and from where parameters and gradients lie then. Strategy decides what is
// appended, not how it runs.
//
//   writer       operations, buffers, uses             program_writer.h
//   offload      tiles, fetches and stores             offload_writer.h
//   parameters   round, publish, gather, release       parameter_writer.h
//   gradients    accumulate, round, reduce, scatter    gradient_writer.h
//   units        batch, forward, loss, backward        unit_writer.h
//   update       norm, clipping, optimizer             update_writer.h
#pragma once

#include <vector>

#include "lib/program/unit_writer.h"
#include "lib/program/update_writer.h"

namespace gxp {

struct ProgramBuilder {
  // `recompute`: by unit. The program has the buffer of the parameters.
  ProgramBuilder(const StepInputs& step_inputs, std::vector<Recompute> recompute);
  // Not copied: the writers refer to each other.
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;

  // The persistent buffers that only training has; before the first operation.
  void make_train_buffers();
  // The program with places, lives and order.
  StepProgram finish() &&;

  const StepInputs inputs;
  ProgramWriter writer;
  OffloadWriter offload;
  ParameterWriter parameters;
  GradientWriter gradients;
  UnitWriter units;
  UpdateWriter update;
};

}  // namespace gxp

// From the step program's buffer numbers to the tensors that the model's code works on.
#pragma once

#include "lib/arch/architecture.h"
#include "lib/model/model.h"
#include "lib/program/build.h"
#include "lib/zero/program_memory.h"

namespace gxp {

// What all operations of a program share.
struct BindingContext {
  const Architecture& architecture;
  const ParameterLayout& layout;
  const ProgramMemory& memory;
  size_t rows;       // of a micro-batch
  size_t positions;  // of a row
};

// A wrap's parameters or gradients, flat.
Tensor tensor_of_wrap(const ParameterLayout& layout, const ProgramMemory& memory, int wrap,
                      const FlatView& view);

// This rank's shard of a wrap, in a flat `buffer` that holds its shard of every wrap.
Tensor shard_of_wrap(const ParameterLayout& layout, const Tensor& buffer, int wrap, int shards);

// The tensors of an operation on a unit. They stay valid as long as context.memory.
UnitTensors bind_unit(const BindingContext& context, const Op& op);

}  // namespace gxp

// The CPU's operations, queued on an emulated GPU's stream: what a GPU's would be if they were the
// CPU's, bit for bit. So all that surrounds them can be held against a run on the CPU.
#pragma once

#include <memory>

#include "kernels/ops.h"
#include "lib/device/stream.h"

namespace gxp {

// Tensors lie in the emulated GPU's memory. An operation runs as late as the stream allows; those
// that return a number wait for it. `stream` outlives it.
std::unique_ptr<Ops> make_queued_cpu_ops(Stream& stream);

}  // namespace gxp

// Operations on tensors in the host's memory, carried out by a GPU's: each call copies what it
// reads there and what it wrote back. So the families of tests/kernels run on a GPU as they are.
#pragma once

#include <memory>

#include "kernels/cuda/table/cuda_ops.h"
#include "kernels/ops.h"
#include "lib/device/device.h"

namespace gxp {

// `ops` queue on `stream` of `device`; both outlive this.
std::unique_ptr<Ops> make_ops_on_device(std::unique_ptr<Ops> ops, Stream& stream, Device& device);

// What a test binary's kinds of backends are made of: a device, a stream and its operations.
struct TestOps;
TestOps make_cuda_test_ops(const CudaOpsOptions& options = {});

}  // namespace gxp

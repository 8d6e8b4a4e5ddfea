// The first GPU, as what the families of tests/kernels run on.
#include "tests/cuda/on_device.h"
#include "tests/kernels/backends.h"

namespace gxp {

std::vector<BackendKind> backend_kinds() { return {{"cuda", 1, make_cuda_test_ops}}; }

}  // namespace gxp

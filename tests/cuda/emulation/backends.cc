// The emulated GPU, with its threads in both orders, as what the families of tests/kernels run on.
#include "tests/kernels/backends.h"
#include "tests/cuda/emulation/cuda_runtime.h"
#include "tests/cuda/on_device.h"

namespace gxp {

std::vector<BackendKind> backend_kinds() {
  using emulation::ThreadOrder;
  const auto kind = [](const char* name, ThreadOrder order) {
    return BackendKind{name, 1, [order] {
                         emulation::set_thread_order(order);
                         return make_cuda_test_ops();
                       }};
  };
  return {kind("emulated cuda, threads up", ThreadOrder::kUp),
          kind("emulated cuda, threads down", ThreadOrder::kDown)};
}

std::vector<BackendKind> attention_kinds() {
  std::vector<BackendKind> kinds = backend_kinds();
  kinds.push_back({"emulated cuda, cuDNN", 1,
                   [] { return make_cuda_test_ops({.attention = AttentionBy::kAuto}); }});
  return kinds;
}

}  // namespace gxp

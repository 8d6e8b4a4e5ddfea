// The first GPU, as what the families of tests/kernels run on.
#include "kernels/cuda/cudnn/cudnn_library.h"
#include "tests/cuda/on_device.h"
#include "tests/kernels/backends.h"

namespace gxp {

std::vector<BackendKind> backend_kinds() {
  // An H100 is off by 0x1p-14 for 16 terms and 0x1p-12 for 208, at most.
  return {{"cuda", 1, [] { return make_cuda_test_ops(); }, 0x1p-13}};
}

std::vector<BackendKind> attention_kinds() {
  std::vector<BackendKind> kinds = backend_kinds();
  if (const Support support = cudnn_library().support; support)
    kinds.push_back(
        {"cuda, cuDNN", 1, [] { return make_cuda_test_ops({.attention = AttentionBy::kAuto}); }});
  else
    WARN("skipped: attention by cuDNN: " << support.reason);
  return kinds;
}

}  // namespace gxp

#include "cmd/gpu_count.h"

#include <csignal>

#include "lib/base/error.h"

#ifdef GXP_WITH_CUDA
#include "lib/device/cuda_device.h"
#endif

namespace gxp {
namespace {

#ifdef GXP_WITH_CUDA
// Threads that the driver may start inherit the mask. A launcher's signals must not go to them: it
// blocks them in its own thread alone (lib/net/launch/signals.h).
Support start_driver() {
  sigset_t all;
  sigset_t former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  Support support = cuda_support();
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return support;
}

int count_of_driver() { return cuda_device_count(); }
#else
Support start_driver() { return {false, "this gxp is built without CUDA"}; }

int count_of_driver() { return 0; }
#endif

}  // namespace

int count_gpus() {
  const Support support = start_driver();
  if (support) return count_of_driver();
  fail(ErrorKind::kUnavailable, "start a rank for each GPU: {}; give --nproc a number",
       support.reason);
}

}  // namespace gxp

#include "cmd/allreduce_test/rank_device.h"

#include "lib/base/error.h"
#include "lib/device/gpu_share.h"

#ifdef GXP_WITH_CUDA
#include "kernels/cuda/cuda_folds.h"
#include "lib/device/cuda_device.h"
#endif

namespace gxp {
namespace {

Support support_of(DeviceChoice choice) {
  if (choice == DeviceChoice::kCpu) return {};
#ifdef GXP_WITH_CUDA
  return cuda_support();
#else
  return {false, "this gxp is built without CUDA"};
#endif
}

RankDevice make_gpu(const RankIdentity& identity) {
  RankDevice made;
#ifdef GXP_WITH_CUDA
  made.number = gpu_of_rank(identity.local_rank, cuda_device_count());
  made.device = make_cuda_device(made.number);
  made.folds = make_cuda_folds();
  made.host = make_cpu_device();
#else
  static_cast<void>(identity);
#endif
  return made;
}

}  // namespace

void check_device(DeviceChoice choice) {
  const Support support = support_of(choice);
  if (support) return;
  fail(ErrorKind::kUnavailable, "measure on --device {}: {}; use cpu",
       kDeviceChoiceNames[size_t(choice)], support.reason);
}

RankDevice make_rank_device(DeviceChoice choice, const RankIdentity& identity) {
  check_device(choice);
  if (choice == DeviceChoice::kCuda) return make_gpu(identity);
  RankDevice made;
  made.device = make_cpu_device();
  return made;
}

}  // namespace gxp

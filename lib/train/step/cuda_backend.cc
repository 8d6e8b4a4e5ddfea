#include "lib/train/step/cuda_backend.h"

#include "kernels/cuda/choice_cache.h"
#include "kernels/cuda/cuda_folds.h"
#include "kernels/cuda/cudnn/cudnn_library.h"
#include "kernels/cuda/table/cuda_ops.h"
#include "lib/base/environment.h"
#include "lib/device/cuda_device.h"

namespace gxp {

namespace {

std::string cache_file(const std::string& setting) {
  if (setting == "off") return "";
  const std::string folder = setting == "auto" ? user_cache_folder(process_environment()) : setting;
  if (folder.empty())
    fail(
        ErrorKind::kConfig,
        "train.gemm_cache auto: neither XDG_CACHE_HOME nor HOME is set; name a folder, or \"off\"");
  return folder + "/cublaslt";
}

AttentionBy attention_by(const TrainConfig& config) {
  if (config.attention == AttentionChoice::kOwn || config.precision == NumberType::kFp32)
    return AttentionBy::kOwn;
  return config.attention == AttentionChoice::kCudnn ? AttentionBy::kCudnn : AttentionBy::kAuto;
}

// A limit set in the environment is used as it is: smaller slices are not tried.
CudnnSlicing slicing_of(const TrainConfig& config) {
  const Environment& environment = process_environment();
  const bool is_named = find_variable(environment, kCudnnSliceVariable) != nullptr;
  return {.most_bytes = most_cudnn_workspace(environment),
          .cache = is_named ? "" : cache_file(config.gemm_cache),
          .order = config.deterministic == Determinism::kOff ? SumOrder::kAny : SumOrder::kFixed};
}

// Ada's and Hopper's tensor cores were the first that multiply 8-bit floats.
void check_float8(int index, const Device& device) {
  constexpr ComputeCapability kLeast = {8, 9};
  if (compute_capability(index) >= kLeast) return;
  fail(ErrorKind::kUnavailable,
       "multiply in fp8 on {}: its tensor cores have no fp8, which needs compute capability {}.{}; "
       "use another GPU with CUDA_VISIBLE_DEVICES, or set train.matmul = \"precision\"",
       device.description(), kLeast.major, kLeast.minor);
}

}  // namespace

Backend make_cuda_backend(int index, const TrainConfig& config, int local_world_size) {
  Backend backend;
  backend.device = make_cuda_device(index);
  if (config.matmul == MatmulType::kFp8) check_float8(index, *backend.device);
  backend.free_at_start = backend.device->free_bytes();
  backend.device->set_limit(config.device_memory_bytes);
  backend.host_device = make_cpu_device();
  backend.lanes = std::make_unique<Lanes>(*backend.device);
  backend.pool = std::make_unique<ThreadPool>(thread_count(config, local_world_size));
  backend.ops = make_cuda_ops((*backend.lanes)[Lane::kCompute], *backend.device,
                              {.gemm_cache = cache_file(config.gemm_cache),
                               .tf32 = config.matmul == MatmulType::kTf32,
                               .attention = attention_by(config),
                               .cudnn_slicing = slicing_of(config),
                               .float8_fast_sums = config.fp8_accumulation == Float8Sums::kFast});
  backend.has_cudnn = attention_by(config) != AttentionBy::kOwn && bool(cudnn_library().support);
  backend.comm_ops = make_cuda_ops((*backend.lanes)[Lane::kComm], *backend.device);
  backend.host_ops = make_cpu_ops(*backend.pool);
  backend.folds = make_cuda_folds();
  return backend;
}

}  // namespace gxp

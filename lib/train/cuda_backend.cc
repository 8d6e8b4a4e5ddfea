#include "lib/train/cuda_backend.h"

#include "kernels/cuda/cuda_ops.h"
#include "lib/device/cuda_device.h"

namespace gxp {

Backend make_cuda_backend(int index, const TrainConfig& config, int local_world_size) {
  Backend backend;
  backend.device = make_cuda_device(index);
  backend.device->set_limit(config.device_memory_bytes);
  backend.host_device = make_cpu_device();
  backend.lanes = std::make_unique<Lanes>(*backend.device);
  backend.pool = std::make_unique<ThreadPool>(thread_count(config, local_world_size));
  backend.ops = make_cuda_ops((*backend.lanes)[Lane::kCompute], *backend.device);
  backend.comm_ops = make_cuda_ops((*backend.lanes)[Lane::kComm], *backend.device);
  backend.host_ops = make_cpu_ops(*backend.pool);
  return backend;
}

}  // namespace gxp

// What a rank computes with: its device, its threads and its kernels.
#pragma once

#include <memory>
#include <string>

#include "kernels/ops.h"
#include "lib/config/run_config.h"
#include "lib/device/device.h"
#include "lib/device/thread_pool.h"

namespace gxp {

struct Backend {
  std::unique_ptr<Device> device;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Ops> ops;
};

// train.threads, or a share of the CPUs that `local_world_size` ranks of this host may use.
int thread_count(const TrainConfig& config, int local_world_size);

// As train.device and train.threads say; `local_world_size` ranks share this host's CPUs.
Backend make_backend(const TrainConfig& config, int local_world_size);

// FLOP/s of a 512 x 512 x 512 matrix product in `dtype`, the run's (compute_type()), which stays in
// the caches: the best of a few, about 10 ms in all. The denominator of MFU on a CPU, whose peak no
// table knows.
double measure_matmul_flops(Backend& backend, DType dtype);
// What it takes of the device while it runs.
inline constexpr size_t kMeasuredBytes = size_t{3} * 512 * 512 * sizeof(float);

}  // namespace gxp

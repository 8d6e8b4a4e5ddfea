// What a rank computes with: its device, its lanes, its threads and its kernels.
#pragma once

#include <memory>
#include <string>

#include "kernels/ops.h"
#include "lib/config/run_config.h"
#include "lib/device/device.h"
#include "lib/device/thread_pool.h"
#include "lib/train/lanes.h"

namespace gxp {

struct Backend {
  std::unique_ptr<Device> device;
  std::unique_ptr<Device> host_device;  // null: `device` is the host
  std::unique_ptr<Lanes> lanes;         // of `device`
  std::unique_ptr<ThreadPool> pool;     // of what the host computes
  std::unique_ptr<ThreadPool> comm_pool;
  std::unique_ptr<Ops> ops;       // of the compute lane
  std::unique_ptr<Ops> comm_ops;  // of the comm lane, beside those
  std::unique_ptr<Ops> host_ops;  // null: `ops` are the host's
  int ranks_on_device = 1;
  std::string choice;  // why this device, for the log; "" where the settings name it

  // What communicators and the host's own arithmetic have.
  [[nodiscard]] Device& host() const { return host_device ? *host_device : *device; }
  [[nodiscard]] Ops& on_host() const { return host_ops ? *host_ops : *ops; }
};

// train.threads, or a share of the CPUs that `local_world_size` ranks of this host may use.
int thread_count(const TrainConfig& config, int local_world_size);

// As train.device and train.threads say. The `local_world_size` ranks of this host share its CPUs,
// and take its GPUs in turn. kUnavailable: there is no such device, and why.
Backend make_backend(const TrainConfig& config, int local_world_size, int local_rank = 0);

// On a device whose memory is the host's: the CPU, or a simulated one.
Backend make_host_backend(std::unique_ptr<Device> device, const TrainConfig& config,
                          int local_world_size);

// FLOP/s of a matrix product in `dtype`, the run's (compute_type()): the best of a few. The
// denominator of MFU on a device whose peak no table knows. On a CPU 512 x 512 x 512, which stays
// in the caches, about 10 ms in all; on a GPU, which that would not fill, 4096 x 4096 x 4096.
double measure_matmul_flops(Backend& backend, DType dtype);

}  // namespace gxp

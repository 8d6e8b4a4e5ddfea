// The resources of a rank: its device, lanes, threads and kernels.
#pragma once

#include <memory>
#include <string>

#include "kernels/device_folds.h"
#include "kernels/ops.h"
#include "lib/config/run_config.h"
#include "lib/device/device.h"
#include "lib/device/thread_pool.h"
#include "lib/zero/lanes.h"

namespace gxp {

struct Backend {
  std::unique_ptr<Device> device;
  std::unique_ptr<Device> host_device;  // null: `device` is the host
  std::unique_ptr<Lanes> lanes;         // of `device`
  std::unique_ptr<ThreadPool> pool;     // for the host's arithmetic
  std::unique_ptr<ThreadPool> comm_pool;
  std::unique_ptr<Ops> ops;            // of the compute lane
  std::unique_ptr<Ops> comm_ops;       // of the comm lane; may run at the same time as `ops`
  std::unique_ptr<Ops> host_ops;       // null: `ops` are the host's
  std::unique_ptr<DeviceFolds> folds;  // of the device's memory; null: it is the host's
  bool has_cudnn = false;              // which computes attention
  uint64_t free_at_start = 0;          // bytes of its memory, by its driver; 0: unknown
  std::string choice;  // why this device, for the log; "" where the settings name it

  // For communicators and the host's own arithmetic.
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

// FLOP/s of a product of two square matrices (measured_width()) in `dtype`, the run's: the best of
// a few. The matrices stay in the caches of a CPU, which takes about 10 ms in all, and are large
// enough to keep a GPU busy.
double measure_matmul_flops(Backend& backend, DType dtype);

// The rate of which MFU is a share: FLOP/s of a device, in the type of its products.
struct PeakRate {
  double flops = 1;
  std::string source;  // "the h100's data sheet's rate in bf16, without sparsity"
};
// Of the run's products: the data sheet's, of a GPU that lib/replay/hardware.h knows, for a half
// type or tf32; of another, measured. None for a CPU: measurements of 10 ms differ by a factor of 3
// between starts, with the clock and the load at that moment.
std::optional<PeakRate> peak_rate(Backend& backend, const TrainConfig& config);

}  // namespace gxp

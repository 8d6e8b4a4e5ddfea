#include "lib/train/step/backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "lib/replay/device_terms.h"
#include "lib/replay/hardware.h"
#include "lib/tensor/tensor.h"

#ifdef GXP_WITH_CUDA
#include "lib/device/cuda_device.h"
#include "lib/device/gpu_share.h"
#include "lib/train/step/cuda_backend.h"
#endif

namespace gxp {
namespace {

struct LocalRanks {
  int local_world_size;
  int local_rank;
};

struct DeviceRow {
  Choice<TrainDevice> device;
  Support (*probe)();
  Backend (*make)(const TrainConfig& config, const LocalRanks& ranks);
};

Support probe_cuda() {
#ifdef GXP_WITH_CUDA
  return cuda_support();
#else
  return {false, "this gxp is built without CUDA"};
#endif
}

Backend make_cuda(const TrainConfig& config, const LocalRanks& ranks) {
#ifdef GXP_WITH_CUDA
  const int index = gpu_of_rank(ranks.local_rank, cuda_device_count());
  return make_cuda_backend(index, config, ranks.local_world_size);
#else
  static_cast<void>(config), static_cast<void>(ranks);
  GXP_ASSERT(false);
  return {};
#endif
}

Support probe_cpu() { return {}; }

Backend make_cpu(const TrainConfig& config, const LocalRanks& ranks) {
  return make_host_backend(make_cpu_device(), config, ranks.local_world_size);
}

// In the order in which `auto` prefers them.
constexpr std::array kDevices = {DeviceRow{TrainDevice::kCuda, probe_cuda, make_cuda},
                                 DeviceRow{TrainDevice::kCpu, probe_cpu, make_cpu}};

}  // namespace

int thread_count(const TrainConfig& config, int local_world_size) {
  return config.threads > 0 ? config.threads : default_thread_count(local_world_size);
}

Backend make_backend(const TrainConfig& config, int local_world_size, int local_rank) {
  const bool any = config.device == TrainDevice::kAuto;
  std::string refused;  // "cuda: no driver"
  for (const DeviceRow& row : kDevices) {
    if (!any && row.device != config.device) continue;
    const Support support = row.probe();
    if (support) {
      if (config.cuda_graphs == CudaGraphs::kOn && row.device != TrainDevice::kCuda)
        fail(ErrorKind::kConfig,
             "train.cuda_graphs on: device {} has no CUDA graphs{}; use auto or off", row.device,
             refused);
      if (!config.profile_steps.empty() && row.device != TrainDevice::kCuda)
        fail(ErrorKind::kConfig,
             "train.profile_steps {}: CUDA's profilers do not see device {}{}; leave it out",
             config.profile_steps, row.device, refused);
      if (config.matmul == MatmulType::kTf32 && row.device != TrainDevice::kCuda)
        fail(ErrorKind::kConfig,
             "train.matmul tf32: device {} has no tensor cores{}; use precision", row.device,
             refused);
      Backend backend = row.make(config, {local_world_size, local_rank});
      if (any) backend.choice = fmt::format("train.device auto: {}{}", row.device, refused);
      return backend;
    }
    if (!any)
      fail(ErrorKind::kUnavailable, "train on train.device {}: {}; use auto or cpu", row.device,
           support.reason);
    refused += fmt::format("; not {}: {}", row.device, support.reason);
  }
  GXP_ASSERT(false);  // every device has a row, and a CPU is always there
  return {};
}

Backend make_host_backend(std::unique_ptr<Device> device, const TrainConfig& config,
                          int local_world_size) {
  Backend backend;
  backend.device = std::move(device);
  backend.device->set_limit(config.device_memory_bytes);
  backend.lanes = std::make_unique<Lanes>(*backend.device);
  backend.pool = std::make_unique<ThreadPool>(thread_count(config, local_world_size));
  backend.comm_pool = std::make_unique<ThreadPool>(1);
  backend.ops = make_cpu_ops(*backend.pool);
  backend.comm_ops = make_cpu_ops(*backend.comm_pool);
  return backend;
}

double measure_matmul_flops(Backend& backend, DType dtype) {
  const size_t size = measured_width(backend.device->space() == MemorySpace::kCuda);
  const Buffer buffer =
      backend.device->allocate(3 * size * size * sizeof(float), MemoryKind::kWorkspace);
  const Shape shape = {3, size, size};
  const Tensor all(buffer.memory().slice(0, shape.count() * size_of(dtype)), dtype, shape);
  const auto matrix = [&](size_t i) { return all.rows(i, 1).reshape({size, size}); };
  Stream& stream = (*backend.lanes)[Lane::kCompute];
  double best_seconds = 1e9;
  for (int repeat = 0; repeat < 6; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    backend.ops->matmul(matrix(0), matrix(1), matrix(2), {});
    stream.finish(Deadline::after(kComputeTimeout));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best_seconds = std::min(best_seconds, seconds.count());
  }
  return 2.0 * double(size * size * size) / best_seconds;
}

std::optional<PeakRate> peak_rate(Backend& backend, const TrainConfig& config) {
  if (backend.device->space() != MemorySpace::kCuda) return std::nullopt;
  const DType dtype = dtype_of(config.precision);
  const bool is_tf32 = config.matmul == MatmulType::kTf32;
  const Gpu* gpu = find_gpu_of_device(backend.device->description());
  if (gpu != nullptr && (is_tf32 || dtype != DType::kF32))
    return PeakRate{is_tf32 ? gpu->flops_tf32() : gpu->flops_16,
                    fmt::format("the {}'s data sheet's rate in {}, without sparsity", gpu->name,
                                is_tf32 ? "tf32" : to_string(dtype))};
  return PeakRate{measure_matmul_flops(backend, dtype),
                  fmt::format("the rate of a {}^3 {} matrix product measured at the start",
                              measured_width(true), to_string(dtype))};
}

}  // namespace gxp

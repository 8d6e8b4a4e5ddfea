#include "lib/train/backend.h"

#include <algorithm>
#include <chrono>

#include "lib/tensor/tensor.h"

namespace gxp {

int thread_count(const TrainConfig& config, int local_world_size) {
  return config.threads > 0 ? config.threads : default_thread_count(local_world_size);
}

Backend make_backend(const TrainConfig& config, int local_world_size) {
  if (config.device == "cuda") {
    fail(ErrorKind::kUnavailable, "train.device: cuda cannot train yet; use auto or cpu");
  }
  Backend backend;
  backend.device = make_cpu_device();
  backend.device->set_limit(config.device_memory_bytes);
  backend.pool = std::make_unique<ThreadPool>(thread_count(config, local_world_size));
  backend.ops = make_cpu_ops(*backend.pool);
  return backend;
}

double measure_matmul_flops(Backend& backend, DType dtype) {
  constexpr size_t kSize = 512;
  const Buffer buffer = backend.device->allocate(kMeasuredBytes, MemoryKind::kWorkspace);
  const Shape shape = {3, kSize, kSize};
  const Tensor all(buffer.memory().slice(0, shape.count() * size_of(dtype)), dtype, shape);
  const auto matrix = [&](size_t i) { return all.rows(i, 1).reshape({kSize, kSize}); };
  double best_seconds = 1e9;
  for (int repeat = 0; repeat < 6; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    backend.ops->matmul(matrix(0), matrix(1), matrix(2), {});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best_seconds = std::min(best_seconds, seconds.count());
  }
  return 2.0 * kSize * kSize * kSize / best_seconds;
}

}  // namespace gxp

// The bench of one GPU that cuda_bench.cc measures with: random tensors in its memory, functions
// that are timed on its stream, and rows of results.
//   Rows     text, or JSON, an object a line: printed as soon as they are measured. A figure is a
//            median (timing.h), beside the ceiling that the same run measured first: the rate of a
//            plain copy (bytes read and written), or of a large product in bf16.
//   Errors   what fails is a row with its error; thrown only if the GPU has failed as a whole.
//   Memory   tensors live until the end of their group, or free_tensors().
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/table/cuda_ops.h"
#include "kernels/cuda/timing.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"

namespace gxp {

inline constexpr DType kBF16 = DType::kBF16;
inline constexpr DType kF32 = DType::kF32;

// A model as a GPU trains it.
struct Sizes {
  const char* name;
  size_t rows, positions, hidden, heads, mlp, vocabulary;
  bool in_float8;  // is timed so as well
  [[nodiscard]] size_t tokens() const { return rows * positions; }
};

class GpuBench {
 public:
  explicit GpuBench(bool as_json)
      : device_(make_cuda_device(0)),
        stream_(device_->make_stream("bench")),
        ops_(make_cuda_ops(*stream_, *device_, {.gemm_cache = cache_path()})),
        as_json_(as_json) {}

  // Whether a row has an error.
  [[nodiscard]] bool failed() const { return failed_; }

 protected:
  struct Result {
    std::string what;
    double seconds;
    double flops, bytes;  // the one that is the larger share of its ceiling counts
  };

  static std::string cache_path() {
    const char* const path = std::getenv("GXP_GEMM_CACHE");
    return path == nullptr ? "" : path;
  }

  // Random values in (-1, 1).
  Tensor tensor(const Shape& shape, DType dtype) {
    Buffer& buffer = buffers_.emplace_back(
        device_->allocate(shape.count() * size_of(dtype), MemoryKind::kWorkspace));
    const Tensor made(buffer.memory(), dtype, shape);
    if (random_.empty()) fill_random();
    const size_t pattern = random_.size();
    for (size_t begin = 0; begin < shape.count(); begin += pattern) {
      const size_t count = std::min(pattern, shape.count() - begin);
      const Tensor to(made.memory.slice(begin * size_of(dtype), count * size_of(dtype)), dtype,
                      Shape{count});
      ops_->convert(
          to, Tensor(noise_.memory().slice(0, count * sizeof(float)), DType::kF32, Shape{count}));
    }
    return made;
  }

  // i32 below `below`.
  Tensor indices(const Shape& shape, size_t below) {
    std::mt19937 random(2);
    std::vector<int32_t> values(shape.count());
    for (int32_t& value : values) value = int32_t(random() % below);
    Buffer& buffer = buffers_.emplace_back(
        device_->allocate(values.size() * sizeof(int32_t), MemoryKind::kWorkspace));
    device_->copy(buffer.memory(), memory_of(values));
    return {buffer.memory(), DType::kI32, shape};
  }

  void free_tensors() { buffers_.clear(); }

  // The head of the rows' table.
  void print_head() const {
    if (as_json_) return;
    fmt::print("{}\n{:<44}{:>10}{:>11}{:>11}{:>9}\n", device_->description(), "", "us", "TFLOP/s",
               "GB/s", "ceiling");
  }

  // Measures rows on tensors of their own; where one cannot be allocated, the rest is left out.
  // Throws the error that ended the GPU's context, for nothing can be measured after it.
  void group(const std::string& what, const std::function<void()>& rows) {
    try {
      rows();
    } catch (const Error& error) {
      report_failure(what, error);
      if (cudaDeviceSynchronize() != cudaSuccess) throw;
    }
    free_tensors();
  }

  // Times what `start` queues, which takes so many operations and moves so many bytes.
  void time(const std::string& what, double flops, double bytes,
            const std::function<void()>& start) {
    try {
      const std::array<std::function<void()>, 1> only = {start};
      const double seconds = double(times_in_turn(native_stream(*stream_), only)[0]) / 1e3;
      report({what, seconds, flops, bytes});
    } catch (const Error& error) {
      report_failure(what, error);
      if (cudaDeviceSynchronize() != cudaSuccess) throw;
    }
  }

  void report(const Result& r) {
    const double flops = r.flops / r.seconds;
    const double bytes = r.bytes / r.seconds;
    // The first copy and the first product are the ceilings.
    if (bytes > 0 && copy_rate_ == 0) copy_rate_ = bytes;
    if (flops > 0 && product_rate_ == 0) product_rate_ = flops;
    const double share =
        std::max(flops > 0 ? flops / product_rate_ : 0, bytes > 0 ? bytes / copy_rate_ : 0);
    if (as_json_) {
      print_line({{"what", r.what},
                  {"seconds", r.seconds},
                  {"flops_per_s", flops},
                  {"bytes_per_s", bytes},
                  {"share_of_ceiling", share}});
    } else {
      fmt::print("{:<44}{:>10.1f}{:>11.1f}{:>11.0f}{:>8.0f}%\n", r.what, r.seconds * 1e6,
                 flops / 1e12, bytes / 1e9, 100 * share);
      std::fflush(stdout);
    }
  }

  void report_failure(const std::string& what, const Error& error) {
    failed_ = true;
    if (as_json_)
      print_line({{"what", what}, {"error", error.what()}});
    else
      fmt::print("{:<44} {}\n", what, error.what());
  }

  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Ops> ops_;

 private:
  void fill_random() {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    random_.resize(size_t{1} << 22);
    for (float& value : random_) value = uniform(random);
    noise_ = device_->allocate(random_.size() * sizeof(float), MemoryKind::kWorkspace);
    device_->copy(noise_.memory(), memory_of(random_));
  }

  static void print_line(const nlohmann::ordered_json& json) {
    fmt::print("{}\n", json.dump());
    std::fflush(stdout);
  }

  bool as_json_;
  bool failed_ = false;
  std::vector<float> random_;
  Buffer noise_;
  std::vector<Buffer> buffers_;
  double copy_rate_ = 0, product_rate_ = 0;  // 0: not measured
};

}  // namespace gxp

// Memory for intermediate results of kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gxp {

// Grows to the largest use and stays: no allocation after the first step. One thread at a time.
class Scratch {
 public:
  // `count` floats, aligned to a cache line, of any content.
  float* take(size_t count) {
    constexpr size_t kLine = 64;
    size_t bytes = count * sizeof(float) + kLine;
    if (memory_.size() * sizeof(float) < bytes) memory_.resize(bytes / sizeof(float));
    void* start = memory_.data();
    return static_cast<float*>(std::align(kLine, count * sizeof(float), start, bytes));
  }

 private:
  std::vector<float> memory_;
};

}  // namespace gxp

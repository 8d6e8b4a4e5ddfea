// Work cut into ranges, each with memory of its thread's own.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cpu/scratch.h"
#include "lib/device/thread_pool.h"

namespace gxp {

// `pool` outlives it. One run at a time.
class ThreadBuffers {
 public:
  explicit ThreadBuffers(ThreadPool& pool)
      : pool_(pool), buffers_(static_cast<size_t>(pool.thread_count())) {}

  // body(begin, end, buffer) for a range of [0, count) per thread, as ThreadPool::parallel_for cuts
  // it with a grain of 1. `buffer` has `floats` floats of any content.
  template <class Body>
  void parallel_for(size_t count, size_t floats, const Body& body) {
    const size_t threads = buffers_.size();
    pool_.run([&](int thread) {
      const auto t = static_cast<size_t>(thread);
      const size_t begin = count * t / threads;
      const size_t end = count * (t + 1) / threads;
      if (begin < end) body(begin, end, buffers_[t].take(floats));
    });
  }

 private:
  ThreadPool& pool_;
  std::vector<Scratch> buffers_;
};

}  // namespace gxp

// The threads of one rank's CPU arithmetic.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace gxp {

// How many threads a rank should use: the CPUs this process may run on (its affinity mask), divided
// by the ranks that share them; at least 1.
int default_thread_count(int local_world_size);

// `threads` threads in all: the caller of run() is one of them and takes part, so one thread means
// no other thread at all. Workers spin shortly for the next job, then sleep.
//   Threads  one run() at a time. run() may not be nested.
//   Errors   the first exception of a job is rethrown by run(), after all have ended.
//   Cost     about a microsecond to start and join while the workers still spin.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int thread_count() const;

  // Calls job(thread) for thread = 0 .. thread_count() - 1, each on its own thread; the caller's is
  // 0.
  template <class Job>
  void run(Job&& job) {
    run_erased([](void* context,
                  int thread) { (*static_cast<std::remove_reference_t<Job>*>(context))(thread); },
               &job);
  }

  // Cuts [0, count) into thread_count() contiguous ranges, multiples of `grain` but for the last,
  // and calls body(begin, end) for each that is not empty. Which thread gets which range is fixed,
  // so sums over ranges come out the same in every run with the same thread count.
  template <class Body>
  void parallel_for(size_t count, size_t grain, Body&& body) {
    const size_t grains = (count + grain - 1) / grain;
    const auto threads = static_cast<size_t>(thread_count());
    run([&](int thread) {
      const size_t t = static_cast<size_t>(thread);
      const size_t begin = grains * t / threads * grain;
      const size_t end = t + 1 == threads ? count : grains * (t + 1) / threads * grain;
      if (begin < end) body(begin, end);
    });
  }

 private:
  void run_erased(void (*job)(void*, int), void* context);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp

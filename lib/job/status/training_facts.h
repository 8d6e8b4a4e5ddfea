// What rank 0's training thread leaves for the thread that tells others of the run.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace gxp {

// Threads: one writes, any read; each value by itself.
struct TrainingFacts {
  int64_t total_steps = 0;  // set before the threads start
  std::atomic<int64_t> steps_done = 0;
  std::atomic<int64_t> steps_made = 0;  // by this process
  std::atomic<double> loss = NAN;
  std::atomic<double> seconds_per_step = 0;  // a recent average; 0: no step has ended
  std::atomic<double> tokens_per_step = 0;
  std::atomic<std::chrono::steady_clock::rep> step_ended = 0;  // when the last one did
};

}  // namespace gxp

#include "lib/device/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/cpu_pause.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

namespace gxp {
namespace {

// Longer than the serial code between two parallel operations of a training step, shorter than a
// scheduler's time slice.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kPausesPerClockRead = 16;  // a pause takes 10 to 40 ns, a look at the clock 20

int allowed_cpu_count() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  // Fails where there are more than CPU_SETSIZE processors.
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1, int(std::thread::hardware_concurrency()));
}

// Returns a value other than `old`, once there is one.
int wait_for_change(const std::atomic<int>& value, int old, bool spins) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      const int now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      if (spins) pause_cpu_once();
    }
  } while (spins && std::chrono::steady_clock::now() < end);
  value.wait(old, std::memory_order_acquire);  // ends: jobs compute, they wait for nobody
  return value.load(std::memory_order_acquire);
}

}  // namespace

int default_thread_count(int local_world_size) {
  return std::max(1, allowed_cpu_count() / std::max(1, local_world_size));
}

// run() writes `job`, `context` and `unfinished`, then raises `generation`; the workers read the
// first two after they saw it rise, and run() the `errors` after it saw `unfinished` reach zero.
struct ThreadPool::Impl {
  explicit Impl(int thread_count)
      : spins(thread_count <= allowed_cpu_count()), errors(size_t(thread_count)) {}

  ~Impl() {
    job = nullptr;
    start();
  }

  void start_workers() {
    for (int thread = 1; thread < int(errors.size()); ++thread)
      workers.push_back(start_thread("gxp-cpu", [this, thread] { work(thread); }));
  }

  void start() {
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
  }

  void work(int thread) {
    pthread_setname_np(pthread_self(), ("gxp-cpu-" + std::to_string(thread)).c_str());
    for (int seen = 0;;) {
      seen = wait_for_change(generation, seen, spins);
      if (job == nullptr) return;
      call_job(thread);
      if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_one();
    }
  }

  void call_job(int thread) {
    try {
      job(context, thread);
    } catch (...) {
      errors[size_t(thread)] = std::current_exception();
    }
  }

  void wait_for_workers() {
    int left = unfinished.load(std::memory_order_acquire);
    while (left != 0) left = wait_for_change(unfinished, left, spins);
  }

  const bool spins;  // not where it would keep another thread of the pool from its CPU
  void (*job)(void*, int) = nullptr;
  void* context = nullptr;
  std::vector<std::exception_ptr> errors;  // of each thread's job
  alignas(64) std::atomic<int> generation = 0;
  alignas(64) std::atomic<int> unfinished = 0;
  std::vector<std::jthread> workers;  // last: joined before the rest goes
};

ThreadPool::ThreadPool(int threads) {
  GXP_ASSERT(threads >= 1);
  impl_ = std::make_unique<Impl>(threads);
  impl_->start_workers();  // apart: if one cannot start, ~Impl ends the others
}
ThreadPool::~ThreadPool() = default;

int ThreadPool::thread_count() const { return int(impl_->errors.size()); }

void ThreadPool::run_erased(void (*job)(void*, int), void* context) {
  impl_->job = job;
  impl_->context = context;
  impl_->unfinished.store(int(impl_->workers.size()), std::memory_order_relaxed);
  impl_->start();
  impl_->call_job(0);
  impl_->wait_for_workers();
  std::exception_ptr first;
  for (std::exception_ptr& error : impl_->errors) {
    if (!first) first = error;
    error = nullptr;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace gxp

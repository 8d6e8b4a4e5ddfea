#include "lib/device/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

TEST_CASE("each thread of a pool runs a job once, the caller as thread 0", "[thread_pool]") {
  const int threads = GENERATE(1, 2, 3, 5, 8);
  ThreadPool pool(threads);
  CHECK(pool.thread_count() == threads);
  std::vector<int> calls(size_t(threads), 0);
  std::vector<std::thread::id> ids(calls.size());
  pool.run([&](int thread) {
    ++calls[size_t(thread)];
    ids[size_t(thread)] = std::this_thread::get_id();
  });
  CHECK(calls == std::vector<int>(calls.size(), 1));
  CHECK(ids[0] == std::this_thread::get_id());
  std::sort(ids.begin(), ids.end());
  CHECK(std::unique(ids.begin(), ids.end()) == ids.end());
}

TEST_CASE("what a job wrote is seen after run, and what was written before is seen in it",
          "[thread_pool]") {
  const int threads = GENERATE(1, 2, 4);
  ThreadPool pool(threads);
  std::vector<int> values(size_t(threads), 0);
  for (int round = 1; round <= 500; ++round) {
    int added = round;
    pool.run([&](int thread) { values[size_t(thread)] += added; });
    REQUIRE(values == std::vector<int>(values.size(), round * (round + 1) / 2));
  }
}

TEST_CASE("workers that have gone to sleep take the next job", "[thread_pool]") {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> calls = 0;
    pool.run([&](int) { ++calls; });
    CHECK(calls == 3);
    // Another pool's start takes longer than the workers spin, on most machines.
    const ThreadPool other(8);
  }
}

TEST_CASE("parallel_for covers every index once, in ranges of whole grains", "[thread_pool]") {
  const int threads = GENERATE(1, 2, 3, 5);
  const size_t count = GENERATE(0, 1, 2, 15, 16, 17, 1000);
  const size_t grain = GENERATE(1, 4, 16, 2000);
  ThreadPool pool(threads);
  std::vector<int> visits(count, 0);
  std::atomic<int> misplaced = 0;
  pool.parallel_for(count, grain, [&](size_t begin, size_t end) {
    if (begin % grain != 0 || (end % grain != 0 && end != count) || begin >= end) ++misplaced;
    for (size_t i = begin; i < end; ++i) ++visits[i];
  });
  CAPTURE(threads, count, grain);
  CHECK(misplaced == 0);
  CHECK(visits == std::vector<int>(count, 1));
}

// The message of what `run` throws.
std::string thrown_by(ThreadPool& pool, const std::vector<int>& throwing) {
  try {
    pool.run([&](int thread) {
      if (std::find(throwing.begin(), throwing.end(), thread) != throwing.end())
        throw std::runtime_error("thread " + std::to_string(thread));
    });
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("the exception of the lowest thread is rethrown, and the pool goes on", "[thread_pool]") {
  ThreadPool pool(4);
  CHECK(thrown_by(pool, {3}) == "thread 3");
  CHECK(thrown_by(pool, {}).empty());
  CHECK(thrown_by(pool, {0, 1, 2, 3}) == "thread 0");
  CHECK(thrown_by(pool, {3, 2}) == "thread 2");
  CHECK(thrown_by(pool, {}).empty());
}

TEST_CASE("a run with an exception ends only after all threads have ended", "[thread_pool]") {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ended = 0;
    CHECK_THROWS_AS(pool.run([&](int thread) {
      if (thread == 0) throw std::runtime_error("first");
      ++ended;
    }),
                    std::runtime_error);
    CHECK(ended == 3);
  }
}

TEST_CASE("a pool that never ran ends its threads", "[thread_pool]") {
  for (int round = 0; round < 20; ++round) CHECK(ThreadPool(4).thread_count() == 4);
}

TEST_CASE("ranks divide the allowed CPUs, and each has at least one thread", "[thread_pool]") {
  const int all = default_thread_count(1);
  CHECK(all >= 1);
  CHECK(default_thread_count(2) == std::max(1, all / 2));
  CHECK(default_thread_count(100'000) == 1);
}

}  // namespace
}  // namespace gxp

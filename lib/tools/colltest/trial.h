// One half of a row on one rank: the memory laid out, calls of the operation, checked or timed.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/tools/colltest/bench_calls.h"
#include "lib/tools/colltest/bench_options.h"
#include "lib/tools/colltest/cases.h"
#include "lib/tools/colltest/check.h"
#include "lib/tools/colltest/guarded_memory.h"
#include "lib/tools/colltest/host_view.h"

namespace gxp {

class Communicator;
class CompressedAllReduce;

// One timed iteration of one rank.
struct Sample {
  int64_t entered_ns = 0;  // steady clock
  int64_t took_ns = 0;     // of one call
};

// The results of checking on one rank. Plain data, for a gather.
struct TrialFindings {
  WrongElements wrong;  // of all checks; the element is the first of the first check that failed
  uint64_t damaged = 0;
};

// The environment of a trial; all outlive it.
struct TrialMemory {
  BenchCalls& calls;
  HostView& view;  // of both buffers
  GuardedMemory& first;
  GuardedMemory& second;
};

// All ranks make the same trials and call the same functions in the same order.
class Trial {
 public:
  // In place only `memory.second` is used. All references outlive the trial.
  Trial(Communicator& communicator, const BenchCase& bench, bool in_place,
        const BenchOptions& options, const TrialMemory& memory);

  // From now on calls go through it; it outlives the trial.
  void use(CompressedAllReduce& compressed) { compressed_ = &compressed; }
  // Calls once on fresh data and compares.
  void check();
  // Warms up, agrees on the number of iterations, and times them.
  std::vector<Sample> time();
  // Compares what the timed calls have left, or, in place, calls on fresh data once more.
  void check_after_timing();
  [[nodiscard]] TrialFindings findings() const;

 private:
  void call_once();
  void fill(Memory memory, int byte);
  void fill_input();
  void compare();
  void prepare_timing();
  // The same on all ranks.
  int choose_iterations(double seconds_each);
  void measure(std::vector<Sample>& samples);

  Communicator& communicator_;
  const BenchCase& bench_;
  const BenchOptions& options_;
  const bool in_place_;
  CompressedAllReduce* compressed_ = nullptr;  // null: the communicator
  TrialMemory memory_;
  ExpectedData data_;
  Call call_;
  Memory whole_;  // in place: the logical buffer
  Memory input_;
  Memory output_;
  WrongElements wrong_;
};

}  // namespace gxp

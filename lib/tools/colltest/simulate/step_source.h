// The steps of an algorithm, rank by rank in order, in bounded memory: a rank's steps are recorded
// one window at a time, by running the algorithm again and skipping what has been used. With
// w windows the algorithm runs w times, on average half through.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

class StepSource {
 public:
  // A window has this many steps, > 0.
  StepSource(const Algorithm& algorithm, const CallShape& shape, size_t window);

  // The rank's next step, valid until the next call for that rank; null after the last.
  const CollectiveStep* next(int rank);

 private:
  struct Window {
    std::vector<CollectiveStep> steps;
    size_t first = 0;  // index of steps[0] among the rank's
    size_t used = 0;
    bool is_last = false;
  };

  void record(int rank, size_t first);

  const Algorithm& algorithm_;
  CallShape shape_;
  size_t window_;
  std::vector<Window> ranks_;
};

}  // namespace gxp

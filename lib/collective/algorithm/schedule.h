// Writes down the steps of an algorithm instead of doing them. No memory, no peers: any rank of
// any world size can be recorded anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

// The steps of one rank, each given to act(step) instead of being done.
template <class Act>
class StepVisitor final : public Primitives {
 public:
  StepVisitor(int rank, int world_size, const Act& act)
      : rank_(rank), world_size_(world_size), act_(act) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return world_size_; }

 private:
  void run(const CollectiveStep& step) override { act_(step); }

  int rank_;
  int world_size_;
  const Act& act_;
};

template <class Act>
void for_each_step(const Algorithm& algorithm, int rank, const CallShape& shape, const Act& act) {
  StepVisitor<Act> visitor(rank, shape.world_size, act);
  algorithm.run(visitor, shape);
}

// Element r holds the steps of rank r, in order.
using Schedule = std::vector<std::vector<CollectiveStep>>;

Schedule record_schedule(const Algorithm& algorithm, const CallShape& shape);

// Elements that `rank` sends: all of them, and those to other hosts, counted step by step.
struct SentElements {
  uint64_t all = 0;
  uint64_t between_hosts = 0;
};
SentElements count_sent(const Algorithm& algorithm, int rank, const CallShape& shape);

// Elements that `rank` sends in all: by the algorithm's formula, else counted. Cost: some log2(p)
// steps.
uint64_t elements_sent(const Algorithm& algorithm, int rank, const CallShape& shape);

std::string to_string(Range range);  // "[0, 4)"

// "send [0, 4) to 1, fold [4, 8) from 1"; ranges are half open.
std::string to_string(const CollectiveStep& step);

}  // namespace gxp

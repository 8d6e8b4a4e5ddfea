// Some of the ranks, as ranks 0 .. size - 1 of their own: an algorithm that runs over a RankSubset
// works among these, on the elements from `offset` on. Algorithms can thus be composed of others.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/collective/algorithm/primitives.h"

namespace gxp {

class RankSubset final : public Primitives {
 public:
  // `ranks` are the members' ranks in `comm`, which is borrowed; its own is among them.
  RankSubset(Primitives& comm, std::vector<int> ranks, size_t offset = 0);
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return int(ranks_.size()); }

 private:
  void run(const CollectiveStep& step) override;
  [[nodiscard]] int outer(int member) const;

  Primitives& comm_;
  std::vector<int> ranks_;
  size_t offset_;
  int rank_;
};

}  // namespace gxp

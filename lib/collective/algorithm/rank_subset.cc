#include "lib/collective/algorithm/rank_subset.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

RankSubset::RankSubset(Primitives& comm, std::vector<int> ranks, size_t offset)
    : comm_(comm), ranks_(std::move(ranks)), offset_(offset) {
  const auto self = std::find(ranks_.begin(), ranks_.end(), comm.rank());
  GXP_ASSERT(self != ranks_.end());
  rank_ = int(self - ranks_.begin());
}

int RankSubset::outer(int member) const {
  return member == kNobody ? kNobody : ranks_[size_t(member)];
}

void RankSubset::run(const CollectiveStep& step) {
  CollectiveStep outside = step;
  outside.to = outer(step.to);
  outside.from = outer(step.from);
  outside.leaving.begin += offset_;
  outside.into.begin += offset_;
  comm_.run(outside);
}

}  // namespace gxp

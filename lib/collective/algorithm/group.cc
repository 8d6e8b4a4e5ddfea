#include "lib/collective/algorithm/group.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

Group::Group(Primitives& comm, std::vector<int> ranks, size_t offset)
    : comm_(comm), ranks_(std::move(ranks)), offset_(offset) {
  const auto self = std::find(ranks_.begin(), ranks_.end(), comm.rank());
  GXP_ASSERT(self != ranks_.end());
  rank_ = static_cast<int>(self - ranks_.begin());
}

int Group::outer(int member) const {
  return member == kNobody ? kNobody : ranks_[static_cast<size_t>(member)];
}

void Group::run(const CollectiveStep& step) {
  CollectiveStep outside = step;
  outside.to = outer(step.to);
  outside.from = outer(step.from);
  outside.leaving.begin += offset_;
  outside.into.begin += offset_;
  comm_.run(outside);
}

}  // namespace gxp

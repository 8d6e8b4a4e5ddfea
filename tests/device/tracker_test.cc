#include "lib/device/tracker.h"

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {

TEST_CASE("the tracker's peak is the use at the highest total, not the maximum of each kind") {
  MemoryTracker tracker;
  tracker.add(MemoryKind::kParameters, 100);
  tracker.add(MemoryKind::kActivations, 50);
  tracker.remove(MemoryKind::kActivations, 50);
  tracker.add(MemoryKind::kGradients, 40);
  CHECK(tracker.live().total() == 140);
  CHECK(tracker.peak().total() == 150);
  CHECK(tracker.peak()[MemoryKind::kActivations] == 50);
  CHECK(tracker.peak()[MemoryKind::kGradients] == 0);
}

TEST_CASE("a reset peak starts from what is live") {
  MemoryTracker tracker;
  tracker.add(MemoryKind::kWorkspace, 10);
  tracker.add(MemoryKind::kWorkspace, 20);
  tracker.remove(MemoryKind::kWorkspace, 20);
  tracker.reset_peak();
  CHECK(tracker.peak().total() == 10);
  CHECK(tracker.allocation_count() == 2);
}

TEST_CASE("removing more than was added is an internal error") {
  MemoryTracker tracker;
  tracker.add(MemoryKind::kOptimizer, 8);
  CHECK_THROWS_AS(tracker.remove(MemoryKind::kOptimizer, 9), Error);
}

}  // namespace gxp

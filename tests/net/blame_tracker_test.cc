#include "lib/net/store/blame_tracker.h"

#include "tests/catch.h"

using namespace gxp;

TEST_CASE("a rank that is lost or reports itself is the cause at once and for good", "[net]") {
  BlameTracker lost;
  lost.lost(2, "gone");
  lost.report(1, 1, "late");
  CHECK(lost.verdict()->rank == 2);
  BlameTracker reported;
  reported.report(3, 3, "loss is NaN");
  reported.lost(3, "gone");
  CHECK(reported.verdict()->reason == "loss is NaN");
}

TEST_CASE("an accusation waits, and first-hand evidence beats it", "[net]") {
  BlameTracker cause;
  cause.report(1, 2, "lost its connection");
  CHECK(cause.pending());
  CHECK_FALSE(cause.verdict().has_value());
  cause.lost(3, "gone");
  CHECK(cause.verdict()->rank == 3);
}

TEST_CASE("an accused rank that has accused another passes the blame on", "[net]") {
  BlameTracker cause;
  cause.report(0, 1, "silent");
  cause.report(1, 2, "silent");
  cause.lost(1, "gone");  // it ended because of rank 2
  cause.report(2, 3, "silent");
  cause.decide();
  CHECK(cause.verdict()->rank == 3);
}

TEST_CASE("a circle of accusations still has a verdict", "[net]") {
  BlameTracker cause;
  cause.report(0, 1, "silent");
  cause.report(1, 0, "silent");
  cause.decide();
  CHECK(cause.verdict().has_value());
}

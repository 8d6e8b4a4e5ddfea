#include "lib/optim/clip.h"

#include <cmath>
#include <limits>

#include "tests/catch.h"

namespace gxp {

TEST_CASE("gradients are scaled only if their norm is above the limit") {
  CHECK(clip_coefficient(0.0, 1.0) == 1.0);
  CHECK(clip_coefficient(0.9, 1.0) == 1.0);
  CHECK(clip_coefficient(4.0, 1.0) == 1.0 / (4.0 + 1e-6));
  CHECK(clip_coefficient(4.0, 0.5) == 0.5 / (4.0 + 1e-6));
}

TEST_CASE("a limit of 0 clips nothing") { CHECK(clip_coefficient(1e30, 0.0) == 1.0); }

TEST_CASE("a norm that is not a number is not hidden") {
  CHECK(std::isnan(clip_coefficient(std::numeric_limits<double>::quiet_NaN(), 1.0)));
}

}  // namespace gxp

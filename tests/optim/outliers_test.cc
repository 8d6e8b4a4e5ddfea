#include "lib/optim/outliers.h"

#include <cmath>
#include <random>
#include <vector>

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {

TEST_CASE("an outlier's z is among the last 128 values, of which it is one", "[optim]") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(3, 0.5);
  Outliers outliers;
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) {
    values.push_back(i == 300 ? 9 : normal(random));
    if (i == 200) {  // a checkpoint
      const std::string text = outliers.text();
      outliers = Outliers();
      outliers.restore(text, "the losses");
    }
    const std::optional<double> z = outliers.add(values.back());
    REQUIRE(z.has_value() == (i >= 128));
    if (!z) continue;
    // By the moments, instead of by differences.
    long double sum = 0, squares = 0;
    for (size_t k = values.size() - 128; k < values.size(); ++k)
      sum += values[k], squares += (long double)(values[k]) * values[k];
    const long double mean = sum / 128;
    CHECK(*z == Approx(double((values.back() - mean) / sqrtl(squares / 128 - mean * mean))));
    CHECK((*z > 5) == (i == 300));
  }
}

TEST_CASE("equal values have no outlier", "[optim]") {
  Outliers outliers;
  for (int i = 0; i < 200; ++i) CHECK(outliers.add(0.1).value_or(0) == 0);
}

TEST_CASE("values of a checkpoint that are none are refused", "[optim]") {
  std::string many;
  for (int i = 0; i < 129; ++i) many += "1 ";
  const std::string text = GENERATE_COPY("x", "1 nan", "1,2", "1  2", many);
  Outliers outliers;
  CHECK_THROWS_AS(outliers.restore(text, "the losses"), Error);
}

}  // namespace gxp

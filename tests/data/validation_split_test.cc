#include "lib/data/documents/validation_split.h"

#include <cmath>
#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

std::vector<uint64_t> held_out(uint64_t begin, uint64_t end, double fraction) {
  std::vector<uint64_t> numbers;
  for (uint64_t i = begin; i < end; ++i)
    if (is_for_validation(i, fraction)) numbers.push_back(i);
  return numbers;
}

}  // namespace

TEST_CASE("a fraction of the documents is for validation, spread over the file", "[data]") {
  const double fraction = GENERATE(0.0, 0.001, 0.01, 0.05, 1.0 / 3, 0.1234567, 0.5, 0.7, 0.999);
  const auto numbers = held_out(0, 100'000, fraction);
  CAPTURE(fraction);
  CHECK(std::abs(double(numbers.size()) - 100'000 * fraction) <= 1);
  // One of each group: no two of them are more than two groups apart.
  for (size_t i = 1; i < numbers.size(); ++i)
    REQUIRE(double(numbers[i] - numbers[i - 1]) < 2 / fraction + 1);
}

TEST_CASE("no period of a file is that of the split", "[data]") {
  const auto numbers = held_out(0, 1'000'000, 0.1);
  std::vector<int> by_place(10);
  for (const uint64_t number : numbers) ++by_place[number % 10];
  // Expected 10,000 each with a standard deviation of 95: five of them leave nothing to chance.
  for (const int count : by_place) CHECK(std::abs(count - 10'000) < 475);
}

TEST_CASE("far numbers are in one group each, too", "[data]") {
  const double fraction = GENERATE(0.01, 0.3);
  const uint64_t begin = uint64_t{1} << 40;
  CHECK(std::abs(double(held_out(begin, begin + 10'000, fraction).size()) - 10'000 * fraction) <=
        1);
}

TEST_CASE("the split is frozen, so that nothing validated is trained on later", "[data]") {
  CHECK(held_out(0, 50, 0.1) == std::vector<uint64_t>{9, 10, 26, 32, 42});
}

}  // namespace gxp

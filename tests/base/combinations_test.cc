#include "tests/combinations.h"

#include <cstdlib>
#include <set>

#include "tests/catch.h"

namespace gxp {

TEST_CASE("every pair of two columns' values is in a case, and cases are few", "[base]") {
  if (std::getenv("GXP_TEST_COMBINATIONS") != nullptr) return;
  const auto sizes = GENERATE(values<std::vector<size_t>>(
      {{1}, {3, 4}, {2, 2, 2}, {20, 8, 2, 2}, {3, 20, 4, 2, 2}, {2, 3, 4, 5, 6}, {1, 7, 1, 2}}));
  const std::vector<std::vector<size_t>> rows = combine_pairs(sizes);
  for (size_t a = 0; a < sizes.size(); ++a) {
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      std::set<std::pair<size_t, size_t>> pairs;
      for (const auto& row : rows) pairs.emplace(row[a], row[b]);
      CHECK(pairs.size() == sizes[a] * sizes[b]);
    }
  }
  std::vector<size_t> sorted = sizes;
  std::ranges::sort(sorted, std::greater{});
  sorted.push_back(1);
  CHECK(4 * rows.size() <= 5 * sorted[0] * sorted[1]);  // the least possible, and a quarter
}

}  // namespace gxp

#include "tests/combinations.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string_view>

namespace gxp {
namespace {

using Row = std::vector<size_t>;
using Pair = std::array<size_t, 4>;  // a column and its value, another and its value

std::vector<Row> all_rows(const std::vector<size_t>& sizes) {
  std::vector<Row> rows = {{}};
  for (const size_t size : sizes) {
    std::vector<Row> longer;
    for (const Row& row : rows) {
      for (size_t value = 0; value < size; ++value) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    }
    rows = std::move(longer);
  }
  return rows;
}

std::vector<Pair> pairs_in(const Row& row) {
  std::vector<Pair> pairs;
  for (size_t a = 0; a < row.size(); ++a) {
    for (size_t b = a + 1; b < row.size(); ++b) pairs.push_back({a, row[a], b, row[b]});
  }
  return pairs;
}

}  // namespace

std::vector<Row> combine_pairs(const std::vector<size_t>& sizes) {
  const std::vector<Row> all = all_rows(sizes);
  const char* const wanted = std::getenv("GXP_TEST_COMBINATIONS");
  if (sizes.size() < 3 || (wanted != nullptr && std::string_view(wanted) == "all")) return all;
  std::set<Pair> missing;
  for (const Row& row : all) {
    for (const Pair& pair : pairs_in(row)) missing.insert(pair);
  }
  std::vector<Row> rows;
  while (!missing.empty()) {
    std::vector<size_t> gains;
    for (const Row& row : all) {
      gains.push_back(size_t(std::ranges::count_if(
          pairs_in(row), [&](const Pair& pair) { return missing.contains(pair); })));
    }
    rows.push_back(all[size_t(std::ranges::max_element(gains) - gains.begin())]);
    for (const Pair& pair : pairs_in(rows.back())) missing.erase(pair);
  }
  return rows;
}

}  // namespace gxp

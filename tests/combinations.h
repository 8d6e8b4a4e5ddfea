// Cases of a test over several columns of values: enough that every pair of values of any two
// columns occurs in a case. What one value, or two together, do wrong is found so, with far fewer
// cases than combinations. With GXP_TEST_COMBINATIONS=all in the environment (make test-long):
// every combination.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

namespace gxp {

// The cases, as indices into columns of these sizes, none of which is 0. The same at every call.
std::vector<std::vector<size_t>> combine_pairs(const std::vector<size_t>& sizes);

// GENERATE(from_range(combinations(all_strategies(), std::vector{1, 2, 3}, ...)))
template <class... Values>
std::vector<std::tuple<Values...>> combinations(const std::vector<Values>&... columns) {
  std::vector<std::tuple<Values...>> rows;
  for (const std::vector<size_t>& row : combine_pairs({columns.size()...})) {
    [&]<size_t... I>(std::index_sequence<I...>) { rows.emplace_back(columns[row[I]]...); }
    (std::index_sequence_for<Values...>());
  }
  return rows;
}

}  // namespace gxp

#include "tests/combinations.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

namespace gxp {
namespace {

using Row = std::vector<size_t>;

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

// A value of a column: its number among all values of all columns.
using Entry = size_t;

// Pairs of entries of different columns that no row has yet.
class MissingPairs {
 public:
  explicit MissingPairs(const std::vector<size_t>& sizes) {
    for (size_t column = 0; column < sizes.size(); ++column)
      columns_.insert(columns_.end(), sizes[column], column);
    missing_.assign(columns_.size() * columns_.size(), 0);
    left_.assign(columns_.size(), 0);
    for (Entry a = 0; a < columns_.size(); ++a)
      for (Entry b = 0; b < columns_.size(); ++b) set(a, b, columns_[a] != columns_[b]);
  }
  [[nodiscard]] bool has(Entry a, Entry b) const { return missing_[a * columns_.size() + b] != 0; }
  // With how many others an entry is missing.
  [[nodiscard]] size_t left(Entry entry) const { return left_[entry]; }
  [[nodiscard]] std::optional<Entry> neediest() const {
    const auto most = std::ranges::max_element(left_);
    return *most == 0 ? std::nullopt : std::optional(Entry(most - left_.begin()));
  }
  [[nodiscard]] size_t column(Entry entry) const { return columns_[entry]; }
  void remove(const std::vector<Entry>& row) {
    for (const Entry a : row)
      for (const Entry b : row) set(a, b, false);
  }

 private:
  void set(Entry a, Entry b, bool missing) {
    char& is = missing_[a * columns_.size() + b];
    left_[a] += size_t(missing) - size_t(is);
    is = char(missing);
  }
  std::vector<size_t> columns_;  // by entry
  std::vector<char> missing_;    // by both entries, in either order
  std::vector<size_t> left_;     // by entry
};

}  // namespace

// Greedy: a row begins with the entry that is in most missing pairs; each further column, the
// longest first, gets the entry that is in most of them with those before, and of several that with
// the fewest left.
std::vector<Row> combine_pairs(const std::vector<size_t>& sizes) {
  const char* const wanted = std::getenv("GXP_TEST_COMBINATIONS");
  if (sizes.size() < 3 || (wanted != nullptr && std::string_view(wanted) == "all"))
    return all_rows(sizes);
  std::vector<Entry> firsts(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), firsts.begin(), Entry{0});
  MissingPairs missing(sizes);
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](size_t column) { return sizes[column]; });
  std::vector<Row> rows;
  while (const auto first = missing.neediest()) {
    std::vector<Entry> entries = {*first};
    Row row(sizes.size());
    row[missing.column(*first)] = *first - firsts[missing.column(*first)];
    for (const size_t column : order) {
      if (column == missing.column(*first)) continue;
      const auto gain = [&](size_t value) {
        const Entry entry = firsts[column] + value;
        const auto pairs =
            std::ranges::count_if(entries, [&](Entry other) { return missing.has(entry, other); });
        return std::pair(size_t(pairs), ~missing.left(entry));
      };
      size_t best = 0;
      for (size_t value = 1; value < sizes[column]; ++value)
        if (gain(value) > gain(best)) best = value;
      row[column] = best;
      entries.push_back(firsts[column] + best);
    }
    missing.remove(entries);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gxp

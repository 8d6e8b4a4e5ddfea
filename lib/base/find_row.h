// Rows of a table by their names: the one that a user has named, and all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/near_match.h"

namespace gxp {

// Throws: there is no `name` among `names`. `option` is what the name was given with.
[[noreturn]] inline void fail_unknown(ErrorKind kind, std::string_view option,
                                      std::string_view name,
                                      const std::vector<std::string>& names) {
  fail(kind, "{} '{}' is unknown{}; use one of: {}", option, name, did_you_mean(name, names),
       joined(names, ", "));
}

// The row of `table` whose `name` is that; an error of this kind, with a near match and all names,
// if there is none.
template <class Table>
const auto& find_row(const Table& table, std::string_view name, std::string_view option,
                     ErrorKind kind = ErrorKind::kUsage) {
  std::vector<std::string> names;
  for (const auto& row : table) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  fail_unknown(kind, option, name, names);
}

template <class Table>
std::vector<std::string_view> row_names(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& row : table) names.push_back(row.name);
  return names;
}

// The names of those rows that have a setting of this key.
template <class Table>
std::vector<std::string_view> rows_with(const Table& table, std::string_view key) {
  std::vector<std::string_view> names;
  for (const auto& row : table) {
    if (row.has(key)) names.push_back(row.name);
  }
  return names;
}

}  // namespace gxp

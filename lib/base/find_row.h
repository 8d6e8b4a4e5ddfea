// The row of a table that a user has named.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/near_match.h"

namespace gxp {

// The row of `table` whose `name` is that; kUsage, with a near match and all names, if there is
// none. `option` is what the name was given with.
template <class Table>
const auto& find_row(const Table& table, std::string_view name, std::string_view option) {
  std::vector<std::string> names;
  for (const auto& row : table) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  fail(ErrorKind::kUsage, "{} '{}' is unknown{}; use one of: {}", option, name,
       did_you_mean(name, names), fmt::join(names, ", "));
}

}  // namespace gxp

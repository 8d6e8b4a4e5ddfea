// Rows of a table of published measurements, by column.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace gxp {

using CsvRow = std::map<std::string, std::string>;

inline std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

inline std::vector<CsvRow> read_published(const std::string& name) {
  std::ifstream file(std::string(GXP_TEST_DATA) + "/plan/" + name);
  REQUIRE(file);
  std::vector<CsvRow> rows;
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = split_csv(line);
    if (keys.empty()) {
      keys = cells;
      continue;
    }
    REQUIRE(cells.size() == keys.size());
    CsvRow& row = rows.emplace_back();
    for (size_t i = 0; i < keys.size(); ++i) row[keys[i]] = cells[i];
  }
  REQUIRE_FALSE(rows.empty());
  return rows;
}

}  // namespace gxp

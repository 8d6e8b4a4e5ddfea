#include "lib/report/report.h"

#include <cerrno>
#include <cstdio>

#include "lib/base/error.h"

namespace gxp {

void Table::add_row(std::vector<Cell> row) {
  GXP_ASSERT(row.size() == columns.size());
  rows.push_back(std::move(row));
}

Table& Report::add_table(std::string name, std::vector<Column> columns) {
  return tables.emplace_back(Table{std::move(name), std::move(columns), {}, {}});
}

void print(const Report& report, Format format) {
  const std::string text = format == Format::kText  ? to_text(report)
                           : format == Format::kCsv ? to_csv(report)
                                                    : to_json(report);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    fail(ErrorKind::kIo, "write results to stdout: {}", system_text(errno));
  }
}

}  // namespace gxp

#include "lib/report/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "lib/base/error.h"
#include "lib/base/text/visible_text.h"

namespace gxp {
namespace {

void write_out(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    fail(ErrorKind::kIo, "write results to stdout: {}", system_text(errno));
  }
}

}  // namespace

void Table::add_row(std::vector<Cell> row) {
  GXP_ASSERT(row.size() == columns.size());
  rows.push_back(std::move(row));
}

Table& Report::add_table(std::string name, std::vector<Column> columns) {
  return tables.emplace_back(Table{std::move(name), std::move(columns), {}, {}});
}

void print_now(std::string_view text) { write_out(visible(text, "\t\n")); }

void print_green(std::string_view text) {
  if (::isatty(STDOUT_FILENO) == 0) return print_now(text);
  write_out(fmt::format("\033[32m{}\033[0m", visible(text, "\t\n")));
}

void print(const Report& report, Format format) {
  write_out(format == Format::kText  ? to_text(report)
            : format == Format::kCsv ? to_csv(report)
                                     : to_json(report));
}

}  // namespace gxp

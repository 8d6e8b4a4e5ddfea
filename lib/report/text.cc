// Reports for people.
#include <fmt/format.h>

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/utf8.h"
#include "lib/base/text/visible_text.h"
#include "lib/report/report.h"

namespace gxp {
namespace {

// Bytes of the unit of a column; 0: each cell has its own.
double unit_of(Style style) {
  switch (style) {
    case Style::kMB:
      return 1e6;
    case Style::kMiB:
      return 1 << 20;
    case Style::kGB:
      return 1e9;
    case Style::kGiB:
      return 1 << 30;
    case Style::kPlain:
    case Style::kBytes:
    case Style::kLines:
      break;
  }
  return 0;
}

struct ToText {
  Style style;
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(int64_t value) const {
    if (unit_of(style) > 0) return fmt::format("{:.2f}", double(value) / unit_of(style));
    const bool bytes = style == Style::kBytes && value >= 0;
    return bytes ? format_bytes(uint64_t(value)) : fmt::format("{}", value);
  }
  std::string operator()(double value) const { return fmt::format("{:.4g}", value); }
  std::string operator()(const std::string& value) const {
    return visible(value, style == Style::kLines ? "\t\n" : "");
  }
  std::string operator()(const std::vector<int64_t>& values) const {
    return fmt::format("[{}]", joined(values, ", "));
  }
};

std::string heading_of(const Column& column) {
  return column.heading.empty() ? column.key : column.heading;
}

// Columns on a terminal: code points, not bytes. Wide characters do not occur in what gxp reports.
size_t width_of(const std::string& text) {
  return size_t(std::ranges::count_if(text, [](char c) { return !continues_utf8(c); }));
}

// One column as text, heading first, every line padded to the same width.
std::vector<std::string> column_text(const Table& table, size_t index) {
  const Column& column = table.columns[index];
  std::vector<std::string> lines = {heading_of(column)};
  bool left = false;
  for (const auto& row : table.rows) {
    lines.push_back(std::visit(ToText{column.style}, row[index]));
    left = left || std::holds_alternative<std::string>(row[index]);
  }
  const size_t width = width_of(*std::ranges::max_element(lines, {}, width_of));
  for (std::string& line : lines) line.insert(left ? line.size() : 0, width - width_of(line), ' ');
  return lines;
}

std::string table_text(const Table& table) {
  if (table.rows.empty() && !table.when_empty.empty()) return table.when_empty + '\n';
  std::vector<std::string> lines(table.rows.size() + 1);
  for (size_t column = 0; column < table.columns.size(); ++column) {
    const std::vector<std::string> cells = column_text(table, column);
    for (size_t i = 0; i < lines.size(); ++i) lines[i] += (column == 0 ? "" : "  ") + cells[i];
  }
  std::string text;
  for (const std::string& line : lines) {
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text;
  for (const Fact& fact : report.facts) {
    if (std::holds_alternative<std::monostate>(fact.value)) continue;
    const std::string value = std::visit(ToText{fact.column.style}, fact.value);
    text += fmt::format("{}: {}\n", heading_of(fact.column), value);
  }
  for (const Table& table : report.tables) text += (text.empty() ? "" : "\n") + table_text(table);
  return text;
}

}  // namespace gxp

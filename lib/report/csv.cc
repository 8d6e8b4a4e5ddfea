// Reports for spreadsheets: RFC 4180.
#include <fmt/format.h>

#include "lib/base/text/joined.h"
#include "lib/base/text/visible_text.h"
#include "lib/report/report.h"

namespace gxp {
namespace {

std::string quote(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

struct ToCsv {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  // A quoted cell may have lines and tabs, but also be printed.
  std::string operator()(const std::string& value) const { return quote(visible(value, "\t\r\n")); }
  std::string operator()(const std::vector<int64_t>& values) const {
    return quote(fmt::format("[{}]", joined(values, ", ")));
  }
};

std::string table_csv(const Table& table) {
  std::string text;
  const auto append = [&](const std::string& cell, bool first) {
    text += (first ? "" : ",") + cell;
  };
  for (const Column& column : table.columns) {
    append(quote(column.key), &column == &table.columns.front());
  }
  text += '\n';
  for (const auto& row : table.rows) {
    for (const Cell& cell : row) append(std::visit(ToCsv{}, cell), &cell == &row.front());
    text += '\n';
  }
  return text;
}

}  // namespace

std::string to_csv(const Report& report) {
  std::string text;
  if (!report.facts.empty()) {
    Table facts{"facts", {{"key"}, {"value"}}, {}};
    for (const Fact& fact : report.facts) facts.add_row(fact.column.key, fact.value);
    text = table_csv(facts);
  }
  for (const Table& table : report.tables) text += (text.empty() ? "" : "\n") + table_csv(table);
  return text;
}

}  // namespace gxp

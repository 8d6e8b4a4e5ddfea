// The result of a command, in one structure: a few facts and tables, written as text for people,
// CSV for spreadsheets or JSON for programs. stdout carries nothing else.
//
//   Report report{.schema = "gxp.memcalc/1"};
//   Table& table =
//       report.add_table("results", {{"gpus"}, {"total_bytes", "total", Style::kBytes}});
//   table.add_row({8, bytes});
//   print(report, options.format);
//
// Units: sizes in bytes, times in seconds, or the unit is in the key ("time_us"). JSON and CSV keep
// every digit; only text is rounded.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace gxp {

enum class Format { kText, kCsv, kJson };

// In the order of the enumerators.
inline constexpr std::array<std::string_view, 3> kFormatNames = {"text", "csv", "json"};

enum class Style {
  kPlain,  // doubles with four significant digits
  kBytes,  // a byte count: 64 MiB
  kLines,  // a text of several lines, whose line feeds and tabs are printed as they are
  // A byte count in one unit for the whole column, two decimals; the heading names the unit.
  kMB,
  kMiB,
  kGB,
  kGiB,
};

// One cell; monostate is "nothing to say": blank in text and CSV, null in JSON. Text leaves such a
// fact out.
using Cell = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>>;

struct Column {
  std::string key;           // name in JSON and CSV; "in_place.time_us" nests in JSON
  std::string heading = {};  // name in text; "": the key
  Style style = Style::kPlain;
};

// A cell of a number, a text, a list, a cell, or an optional one of these, which is blank if empty.
template <class Value>
Cell to_cell(Value&& value) {
  using Plain = std::remove_cvref_t<Value>;
  if constexpr (std::is_integral_v<Plain> && !std::is_same_v<Plain, bool>) {
    return int64_t(value);
  } else if constexpr (std::is_convertible_v<Value, std::string_view> &&
                       !std::is_same_v<Plain, std::string>) {
    return std::string(std::string_view(value));
  } else if constexpr (requires { value.has_value(); }) {
    return value.has_value() ? to_cell(*std::forward<Value>(value)) : Cell();
  } else {
    return std::forward<Value>(value);
  }
}

// Cells of such values. Not a list in braces: GCC 12 destroys elements of one that are not there
// yet, where memory runs out while they are made.
template <class... Values>
std::vector<Cell> make_row(Values&&... values) {
  std::vector<Cell> row;
  row.reserve(sizeof...(values));
  (row.push_back(to_cell(std::forward<Values>(values))), ...);
  return row;
}

// In text, columns that hold any string are aligned left, all others right.
struct Table {
  std::string name;  // key of the array of rows in JSON
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string when_empty = {};  // what text says in place of a table without rows; "": the headings

  // One cell per column, or kInternal.
  void add_row(std::vector<Cell> row);
  // Likewise, of the values of make_row().
  template <class... Values>
  requires(sizeof...(Values) > 1 || !(std::is_convertible_v<Values, std::vector<Cell>> &&
                                      ...)) void add_row(Values&&... values) {
    add_row(make_row(std::forward<Values>(values)...));
  }
};

struct Fact {
  Column column;
  Cell value;
};

struct Report {
  std::string schema;            // names the shape and its version: "gxp.memcalc/1"
  std::vector<Fact> facts = {};  // in addition to the tables: {"step", ...}
  std::deque<Table> tables = {};

  // The reference stays valid while the report lives.
  Table& add_table(std::string name, std::vector<Column> columns);
};

// The facts, one a line, then the tables, an empty line between any two.
std::string to_text(const Report& report);

// RFC 4180, with plain line feeds: each table under a line of keys; the facts are a first table of
// keys and values; an empty line between any two tables.
std::string to_csv(const Report& report);

// One object: "schema", the facts, and each table as an array of objects. NaN and infinities, which
// JSON lacks, are null.
std::string to_json(const Report& report);

// Writes a part of a text to stdout before the rest of it is known, as Style::kLines has it; whole
// characters. kIo: as print().
void print_now(std::string_view text);
// The same in green, if stdout is a terminal.
void print_green(std::string_view text);

// Writes the report to stdout. kIo: stdout does not take it (full disk).
void print(const Report& report, Format format);

}  // namespace gxp

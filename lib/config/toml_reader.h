// TOML text as a flat list of sections and keys with their lines, and values as TOML writes them.
// load.h interprets them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gxp {

// The value of one setting, whatever wrote it: a TOML file, --set or the environment.
using Value =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

// As TOML writes it: true, 25, 0.5, "text", ["a", "b"], [0.5, 2.0]. A double keeps every bit and
// never looks like an integer; strings are escaped, so that the text reads back to the same value.
std::string to_toml(const Value& value);

struct TomlEntry {
  std::string section;  // "": the key comes before the first section
  std::string key;
  int line = 0;
  std::optional<Value> value;  // nothing if the value has a type that no setting has
  std::string kind;            // its type in that case: "a table", "a date"
};

struct TomlSection {
  std::string name;
  int line = 0;
};

struct TomlDocument {
  std::vector<TomlSection> sections;
  std::vector<TomlEntry> entries;  // by line
  std::string syntax_error;        // if set, the lists are empty: parsing stops there
  int syntax_error_line = 0;
};

TomlDocument parse_toml(std::string_view text);

// One value as written right of "="; nothing if it is none.
std::optional<Value> parse_toml_value(std::string_view text);

}  // namespace gxp

#include "lib/tools/checkpoints/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/toml_library.h"

namespace gxp {
namespace {

struct RuleTable {
  std::string_view key;
  RuleKind kind;
  std::string_view keys;  // each between spaces
  std::string_view words;
};

constexpr std::array kRuleTables = {
    RuleTable{"rename", RuleKind::kRename, " from to optional ", "from and to"},
    RuleTable{"drop", RuleKind::kDrop, " from optional ", "nothing but from"},
    RuleTable{"reorder", RuleKind::kReorder, " from rows head_size optional ",
              "from, rows and head_size"},
    RuleTable{"transpose", RuleKind::kTranspose, " from optional ", "nothing but from"},
    RuleTable{"zeros", RuleKind::kZeros, " from to optional ", "from and to"}};

std::string string_of(const toml::table& table, const char* key, const std::string& where) {
  const auto* text = table[key].as_string();
  if (text == nullptr) fail(ErrorKind::kConfig, "{}: {} must be a string", where, key);
  return text->get();
}

void read_reorder(const toml::table& table, const std::string& where, Rule& rule) {
  const std::string rows = string_of(table, "rows", where);
  if (rows == "unchanged" && !table.contains("head_size")) return;
  if (rows != "pairs-to-halves" && rows != "halves-to-pairs")
    fail(
        ErrorKind::kConfig,
        "{}: rows is '{}', neither pairs-to-halves nor halves-to-pairs, nor unchanged, which takes "
        "no head_size",
        where, rows);
  rule.rows = rows == "pairs-to-halves" ? RotaryRows::kHalves : RotaryRows::kPairs;
  if (!table.contains("head_size")) return;
  const int64_t size = table["head_size"].value_or(int64_t(0));
  if (size < 2 || size % 2 != 0)
    fail(ErrorKind::kConfig, "{}: head_size must be an even number of channels", where);
  rule.head_size = uint64_t(size);
}

void check_keys(const toml::table& table, const RuleTable& row, const std::string& where) {
  for (const auto& [key, node] : table) {
    const std::string word = fmt::format(" {} ", key.str());
    if (row.keys.find(word) == std::string_view::npos)
      fail(ErrorKind::kConfig, "{}: a rule takes {}", where, row.words);
  }
  if (!table.contains("from") ||
      (row.keys.find(" to ") != std::string_view::npos) != table.contains("to"))
    fail(ErrorKind::kConfig, "{}: a rule takes {}", where, row.words);
}

Rule read_rule(const toml::table& table, const RuleTable& row, const std::string& path) {
  Rule rule{.line = int(table.source().begin.line), .kind = row.kind};
  const std::string where = fmt::format("{}:{}", path, rule.line);
  check_keys(table, row, where);
  rule.text = string_of(table, "from", where);
  if (table.contains("to")) rule.to = string_of(table, "to", where);
  if (row.kind == RuleKind::kReorder) read_reorder(table, where, rule);
  if (const auto* optional = table["optional"].as_boolean()) {
    rule.optional = optional->get();
  } else if (table.contains("optional")) {
    fail(ErrorKind::kConfig, "{}: optional must be true or false", where);
  }
  try {
    rule.from.assign(rule.text);
  } catch (const std::regex_error& error) {
    fail(ErrorKind::kConfig, "{}: '{}' is not a regular expression: {}", where, rule.text,
         error.what());
  }
  return rule;
}

}  // namespace

std::vector<Rule> read_rules(std::string_view text, const std::string& path) {
  const toml::table root = parse_toml_or_fail(text, path);
  std::vector<Rule> rules;
  for (const auto& [key, node] : root) {
    const auto row = std::ranges::find(kRuleTables, key.str(), &RuleTable::key);
    const toml::array* list = row != kRuleTables.end() ? node.as_array() : nullptr;
    if (list == nullptr)
      fail(ErrorKind::kConfig,
           "{}:{}: '{}' is not [[rename]], [[drop]], [[reorder]], [[transpose]] or [[zeros]]", path,
           node.source().begin.line, key.str());
    for (const toml::node& element : *list) {
      if (!element.is_table())
        fail(ErrorKind::kConfig, "{}:{}: a rule must be a table", path,
             element.source().begin.line);
      rules.push_back(read_rule(*element.as_table(), *row, path));
    }
  }
  std::ranges::stable_sort(rules, {}, &Rule::line);
  return rules;
}

}  // namespace gxp

#include "lib/ckpt/rename.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/text_file.h"
#include "lib/base/text/toml_library.h"

namespace gxp {
namespace {

constexpr size_t kMaxRulesBytes = 1 << 20;
// std::regex takes stack for each character.
constexpr size_t kMaxMatchedName = 4096;

struct RenameRule {
  int line = 0;
  std::string text;
  std::regex from;
  std::optional<std::string> to;  // nothing: drop
};

std::string string_of(const toml::table& table, const char* key, const std::string& where) {
  const auto* text = table[key].as_string();
  if (text == nullptr) fail(ErrorKind::kConfig, "{}: {} must be a string", where, key);
  return text->get();
}

RenameRule read_rule(const toml::table& table, bool renames, const std::string& path) {
  RenameRule rule;
  rule.line = int(table.source().begin.line);
  const std::string where = fmt::format("{}:{}", path, rule.line);
  if (table.size() != (renames ? 2 : 1))
    fail(ErrorKind::kConfig, "{}: a rule has {}", where,
         renames ? "from and to" : "nothing but from");
  rule.text = string_of(table, "from", where);
  if (renames) rule.to = string_of(table, "to", where);
  try {
    rule.from.assign(rule.text);
  } catch (const std::regex_error& error) {
    fail(ErrorKind::kConfig, "{}: '{}' is no regular expression: {}", where, rule.text,
         error.what());
  }
  return rule;
}

std::vector<RenameRule> read_rules(const std::string& path) {
  const toml::table root = parse_toml_or_fail(read_text_file(path, kMaxRulesBytes, "rules"), path);
  std::vector<RenameRule> rules;
  for (const auto& [key, node] : root) {
    const bool renames = key == "rename";
    const toml::array* list = renames || key == "drop" ? node.as_array() : nullptr;
    if (list == nullptr)
      fail(ErrorKind::kConfig, "{}:{}: '{}' is not [[rename]] or [[drop]]", path,
           node.source().begin.line, key.str());
    for (const toml::node& element : *list) {
      if (!element.is_table())
        fail(ErrorKind::kConfig, "{}:{}: a rule must be a table", path,
             element.source().begin.line);
      rules.push_back(read_rule(*element.as_table(), renames, path));
    }
  }
  std::ranges::stable_sort(rules, {}, &RenameRule::line);
  return rules;
}

bool matches_rule(const std::string& name, const RenameRule& rule) {
  if (name.size() > kMaxMatchedName)
    fail(ErrorKind::kCorrupt, "rename tensors: a name has {} characters, more than {}", name.size(),
         kMaxMatchedName);
  return std::regex_match(name, rule.from);
}

// Returns how many tensors it has matched.
uint64_t apply_rule(NamedTensors& tensors, const RenameRule& rule) {
  const auto renamed = [&](const std::string& name) -> std::optional<std::string> {
    if (!matches_rule(name, rule)) return name;
    if (!rule.to) return std::nullopt;
    return std::regex_replace(name, rule.from, *rule.to, std::regex_constants::format_first_only);
  };
  rename_record(tensors.optimizer, renamed);
  if (!rule.to)
    return std::erase_if(tensors.tensors, [&](const NamedTensor& tensor) {
      return matches_rule(tensor.info.name, rule);
    });
  uint64_t matched = 0;
  for (NamedTensor& tensor : tensors.tensors) {
    std::string& name = tensor.info.name;
    if (!matches_rule(name, rule)) continue;
    name = *renamed(name);
    if (name.empty() || name.find('\0') != std::string::npos)
      fail(ErrorKind::kConfig, "rename tensors: '{}' makes a name that is empty or holds a NUL",
           rule.text);
    ++matched;
  }
  return matched;
}

void check_unique(const NamedTensors& tensors, const std::string& path) {
  std::set<std::pair<std::string_view, Role>> names;
  for (const NamedTensor& tensor : tensors.tensors) {
    if (!names.insert({tensor.info.name, tensor.info.role}).second)
      fail(ErrorKind::kConfig, "{}: two tensors would be called '{}'", path, tensor.info.name);
  }
}

}  // namespace

RenameCounts rename_tensors(NamedTensors& tensors, const std::string& path) {
  RenameCounts counts;
  for (const RenameRule& rule : read_rules(path)) {
    const uint64_t matched = apply_rule(tensors, rule);
    if (matched == 0)
      fail(ErrorKind::kConfig, "{}:{}: '{}' matches no tensor", path, rule.line, rule.text);
    (rule.to ? counts.renamed : counts.dropped) += matched;
  }
  check_unique(tensors, path);
  return counts;
}

}  // namespace gxp

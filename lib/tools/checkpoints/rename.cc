#include "lib/tools/checkpoints/rename.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/base/text_file.h"
#include "lib/base/toml_library.h"
#include "lib/ckpt/tensor_views.h"

namespace gxp {
namespace {

constexpr size_t kMaxRulesBytes = 1 << 20;
// std::regex takes stack for each character.
constexpr size_t kMaxMatchedName = 4096;

enum class RuleKind : uint8_t { kRename, kDrop, kReorder };

struct Rule {
  int line = 0;
  RuleKind kind = RuleKind::kRename;
  std::string text = {};
  std::regex from = {};
  std::string to = {};                    // of kRename
  RotaryRows rows = RotaryRows::kHalves;  // of kReorder
  uint64_t head_size = 0;
};

struct RuleTable {
  std::string_view key;
  RuleKind kind;
  size_t keys;
  std::string_view words;
};

constexpr std::array kRuleTables = {
    RuleTable{"rename", RuleKind::kRename, 2, "from and to"},
    RuleTable{"drop", RuleKind::kDrop, 1, "nothing but from"},
    RuleTable{"reorder", RuleKind::kReorder, 3, "from, rows and head_size"}};

std::string string_of(const toml::table& table, const char* key, const std::string& where) {
  const auto* text = table[key].as_string();
  if (text == nullptr) fail(ErrorKind::kConfig, "{}: {} must be a string", where, key);
  return text->get();
}

void read_reorder(const toml::table& table, const std::string& where, Rule& rule) {
  const std::string rows = string_of(table, "rows", where);
  if (rows != "pairs-to-halves" && rows != "halves-to-pairs")
    fail(ErrorKind::kConfig, "{}: rows is '{}', neither pairs-to-halves nor halves-to-pairs", where,
         rows);
  rule.rows = rows == "pairs-to-halves" ? RotaryRows::kHalves : RotaryRows::kPairs;
  const int64_t size = table["head_size"].value_or(int64_t(0));
  if (size < 2 || size % 2 != 0)
    fail(ErrorKind::kConfig, "{}: head_size must be an even number of channels", where);
  rule.head_size = uint64_t(size);
}

Rule read_rule(const toml::table& table, const RuleTable& row, const std::string& path) {
  Rule rule{.line = int(table.source().begin.line), .kind = row.kind};
  const std::string where = fmt::format("{}:{}", path, rule.line);
  if (table.size() != row.keys) fail(ErrorKind::kConfig, "{}: a rule takes {}", where, row.words);
  rule.text = string_of(table, "from", where);
  if (row.kind == RuleKind::kRename) rule.to = string_of(table, "to", where);
  if (row.kind == RuleKind::kReorder) read_reorder(table, where, rule);
  try {
    rule.from.assign(rule.text);
  } catch (const std::regex_error& error) {
    fail(ErrorKind::kConfig, "{}: '{}' is not a regular expression: {}", where, rule.text,
         error.what());
  }
  return rule;
}

std::vector<Rule> read_rules(const std::string& path) {
  const toml::table root = parse_toml_or_fail(read_text_file(path, kMaxRulesBytes, "rules"), path);
  std::vector<Rule> rules;
  for (const auto& [key, node] : root) {
    const auto row = std::ranges::find(kRuleTables, key.str(), &RuleTable::key);
    const toml::array* list = row != kRuleTables.end() ? node.as_array() : nullptr;
    if (list == nullptr)
      fail(ErrorKind::kConfig, "{}:{}: '{}' is not [[rename]], [[reorder]] or [[drop]]", path,
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

bool matches_rule(const std::string& name, const Rule& rule) {
  if (name.size() > kMaxMatchedName)
    fail(ErrorKind::kCorrupt, "rename tensors: a name has {} characters, more than {}", name.size(),
         kMaxMatchedName);
  return std::regex_match(name, rule.from);
}

// Names of queries' and keys' rows that say their order: Meta's and torchtitan's, Hugging Face's.
std::optional<RotaryRows> order_of(const std::string& name) {
  static const std::regex pairs("(.*[.])?attention[.]w[qk][.].*");
  static const std::regex halves("(.*[.])?self_attn[.][qk]_proj[.].*");
  if (std::regex_match(name, pairs)) return RotaryRows::kPairs;
  if (std::regex_match(name, halves)) return RotaryRows::kHalves;
  return std::nullopt;
}

void rename(NamedTensor& tensor, const Rule& rule, const std::string& to, bool reorders) {
  if (to.empty() || to.find('\0') != std::string::npos)
    fail(ErrorKind::kConfig, "rename tensors: '{}' makes a name that is empty or holds a NUL",
         rule.text);
  const auto before = order_of(tensor.info.name), after = order_of(to);
  if (before && after && before != after && !reorders)
    fail(ErrorKind::kConfig,
         "rename {} to {}: the rows of a head lie in another order there, neighbouring pairs under "
         "Meta's names and two halves under Hugging Face's; add [[reorder]] with from, rows = "
         "\"{}\" and head_size",
         tensor.info.name, to,
         before == RotaryRows::kPairs ? "pairs-to-halves" : "halves-to-pairs");
  tensor.info.name = to;
}

void reorder(NamedTensor& tensor, const Rule& rule) {
  const TensorInfo& info = tensor.info;
  if (info.role == Role::kColumnMeans) return;  // of columns, which stay
  if (info.shape.empty() || info.shape[0] % rule.head_size != 0)
    fail(ErrorKind::kConfig, "reorder {}: its shape ({}) does not split into heads of {} rows",
         info.name, joined(info.shape, ", "), rule.head_size);
  tensor = with_rotary_rows(std::move(tensor), rule.head_size, rule.rows);
}

// Returns how many tensors it has matched.
uint64_t apply_rule(NamedTensors& tensors, const Rule& rule, bool reorders) {
  const auto renamed = [&](const std::string& name) -> std::optional<std::string> {
    if (!matches_rule(name, rule) || rule.kind == RuleKind::kReorder) return name;
    if (rule.kind == RuleKind::kDrop) return std::nullopt;
    return std::regex_replace(name, rule.from, rule.to, std::regex_constants::format_first_only);
  };
  rename_record(tensors.optimizer, renamed);
  const auto matches = [&](const NamedTensor& tensor) {
    return matches_rule(tensor.info.name, rule);
  };
  if (rule.kind == RuleKind::kDrop) return std::erase_if(tensors.tensors, matches);
  uint64_t matched = 0;
  for (NamedTensor& tensor : tensors.tensors) {
    if (!matches(tensor)) continue;
    if (rule.kind == RuleKind::kReorder)
      reorder(tensor, rule);
    else
      rename(tensor, rule, *renamed(tensor.info.name), reorders);
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
  const std::vector<Rule> rules = read_rules(path);
  const bool reorders = std::ranges::find(rules, RuleKind::kReorder, &Rule::kind) != rules.end();
  for (const Rule& rule : rules) {
    const uint64_t matched = apply_rule(tensors, rule, reorders);
    if (matched == 0)
      fail(ErrorKind::kConfig, "{}:{}: '{}' matches no tensor", path, rule.line, rule.text);
    uint64_t& count = rule.kind == RuleKind::kRename ? counts.renamed
                      : rule.kind == RuleKind::kDrop ? counts.dropped
                                                     : counts.reordered;
    count += matched;
  }
  check_unique(tensors, path);
  return counts;
}

}  // namespace gxp

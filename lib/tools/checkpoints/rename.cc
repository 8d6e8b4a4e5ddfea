#include "lib/tools/checkpoints/rename.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/base/text_file.h"
#include "lib/ckpt/tensor_views.h"
#include "lib/tools/checkpoints/named_maps.h"
#include "lib/tools/checkpoints/rules.h"

namespace gxp {
namespace {

constexpr size_t kMaxRulesBytes = 1 << 20;
// std::regex takes stack for each character.
constexpr size_t kMaxMatchedName = 4096;

bool matches_rule(const std::string& name, const Rule& rule) {
  if (name.size() > kMaxMatchedName)
    fail(ErrorKind::kCorrupt, "rename tensors: a name has {} characters, more than {}", name.size(),
         kMaxMatchedName);
  return std::regex_match(name, rule.from);
}

// Names of queries' and keys' rows that say their order: Meta's and torchtitan's, Hugging Face's.
std::optional<RotaryRows> order_of(const std::string& name) {
  static const std::regex pairs("(.*[.])?attention[.](qkv_linear[.])?w[qk][.].*");
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

// It has a copy per host in front of its rows.
void refuse_residual(const TensorInfo& info, std::string_view act) {
  if (info.role != Role::kCodecResidual) return;
  fail(ErrorKind::kConfig,
       "{} {} of {}: it is what comm.codec has not sent yet, which keeps its order; "
       "--drop-optimizer leaves it and the optimizer out",
       act, to_string(info.role), info.name);
}

// `head_size`: the model's, 0 if it is not known.
void reorder(NamedTensor& tensor, const Rule& rule, uint64_t head_size) {
  const TensorInfo& info = tensor.info;
  if (!rule.rows || info.role == Role::kColumnMeans) return;  // of columns, which stay
  refuse_residual(info, "reorder");
  if (rule.head_size > 0) head_size = rule.head_size;
  if (head_size == 0)
    fail(ErrorKind::kConfig,
         "reorder {}: the size of a head is not known; --config DIR names the Hugging Face "
         "directory, or config.json, of the model",
         info.name);
  if (info.shape.empty() || info.shape[0] % head_size != 0)
    fail(ErrorKind::kConfig, "reorder {}: its shape ({}) does not split into heads of {} rows",
         info.name, joined(info.shape, ", "), head_size);
  tensor = with_rotary_rows(std::move(tensor), head_size, *rule.rows);
}

void transpose(NamedTensor& tensor) {
  const TensorInfo& info = tensor.info;
  refuse_residual(info, "transpose");
  if (info.shape.size() != 2)
    fail(ErrorKind::kConfig, "transpose {} of {}: its shape ({}) is no matrix's",
         to_string(info.role), info.name, joined(info.shape, ", "));
  tensor = transposed(std::move(tensor));
}

// A vector as long as the weight's rows.
NamedTensor zeros_beside(const NamedTensor& weight, const std::string& name) {
  const TensorInfo& info = weight.info;
  if (info.shape.empty())
    fail(ErrorKind::kConfig, "add zeros beside {}: it has no rows", info.name);
  return {{name, Role::kWeight, info.dtype, {info.shape.back()}},
          [](uint64_t, Memory out) { std::memset(out.data, 0, out.bytes); }};
}

std::string replaced(const std::string& name, const Rule& rule) {
  return std::regex_replace(name, rule.from, rule.to, std::regex_constants::format_first_only);
}

// Weights that are missing; an optimizer that has no state of them cannot go on with them.
uint64_t add_zeros(NamedTensors& tensors, const Rule& rule) {
  uint64_t matched = 0;
  std::vector<NamedTensor> added;
  bool has_state = false;
  for (const NamedTensor& tensor : tensors.tensors) {
    has_state |= tensor.info.role != Role::kWeight;
    if (tensor.info.role != Role::kWeight || !matches_rule(tensor.info.name, rule)) continue;
    ++matched;
    const std::string name = replaced(tensor.info.name, rule);
    if (find_tensor(tensors, name) == nullptr) added.push_back(zeros_beside(tensor, name));
  }
  if (has_state && !added.empty())
    tensors.optimizer.lost.push_back(fmt::format(
        "state for {} and the other zeros that are added, which the source's model does "
        "not have",
        added.front().info.name));
  std::ranges::move(added, std::back_inserter(tensors.tensors));
  return matched;
}

// Of all rules.
struct RuleContext {
  bool reorders = false;   // whether one is a [[reorder]]
  uint64_t head_size = 0;  // the model's
};

void change(NamedTensor& tensor, const Rule& rule, const RuleContext& context) {
  switch (rule.kind) {
    case RuleKind::kReorder:
      return reorder(tensor, rule, context.head_size);
    case RuleKind::kTranspose:
      return transpose(tensor);
    default:
      return rename(tensor, rule, replaced(tensor.info.name, rule), context.reorders);
  }
}

// Returns how many tensors it has matched.
uint64_t apply_rule(NamedTensors& tensors, const Rule& rule, const RuleContext& context) {
  if (rule.kind == RuleKind::kZeros) return add_zeros(tensors, rule);
  const bool is_drop = rule.kind == RuleKind::kDrop;
  if (is_drop || rule.kind == RuleKind::kRename)
    rename_record(tensors.optimizer, [&](const std::string& name) -> std::optional<std::string> {
      if (!matches_rule(name, rule)) return name;
      return is_drop ? std::nullopt : std::optional(replaced(name, rule));
    });
  const auto matches = [&](const NamedTensor& tensor) {
    return matches_rule(tensor.info.name, rule);
  };
  if (is_drop) return std::erase_if(tensors.tensors, matches);
  uint64_t matched = 0;
  for (NamedTensor& tensor : tensors.tensors) {
    if (!matches(tensor)) continue;
    change(tensor, rule, context);
    ++matched;
  }
  return matched;
}

uint64_t number_told(const KeyValues& settings, std::string_view key) {
  const std::string text = find_value(settings, key).value_or("");
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// 0 if the settings do not tell.
uint64_t head_size_told(const KeyValues& settings) {
  const uint64_t told = number_told(settings, "model.head_size");
  const uint64_t heads = number_told(settings, "model.heads");
  const uint64_t hidden = number_told(settings, "model.hidden");
  if (told > 0) return told;
  return heads == 0 || hidden % heads != 0 ? 0 : hidden / heads;
}

void check_unique(const NamedTensors& tensors, const std::string& path) {
  std::set<std::pair<std::string_view, Role>> names;
  for (const NamedTensor& tensor : tensors.tensors) {
    if (!names.insert({tensor.info.name, tensor.info.role}).second)
      fail(ErrorKind::kConfig, "{}: two tensors would be called '{}'", path, tensor.info.name);
  }
}

}  // namespace

RuleCounts rename_tensors(NamedTensors& tensors, const std::string& map,
                          const KeyValues& settings) {
  RuleCounts counts = {};
  const std::vector<std::string_view> names = map_names();
  const bool is_named = std::ranges::find(names, map) != names.end();
  const std::string text =
      is_named ? rules_of_map(map, settings) : read_text_file(map, kMaxRulesBytes, "rules");
  const std::string path = is_named ? "--map " + map : map;
  const std::vector<Rule> rules = read_rules(text, path);
  const RuleContext context{
      std::ranges::find(rules, RuleKind::kReorder, &Rule::kind) != rules.end(),
      head_size_told(settings)};
  for (const Rule& rule : rules) {
    const uint64_t matched = apply_rule(tensors, rule, context);
    if (matched == 0 && !rule.optional)
      fail(ErrorKind::kConfig, "{}:{}: '{}' matches no tensor", path, rule.line, rule.text);
    counts[size_t(rule.kind)] += matched;
  }
  check_unique(tensors, path);
  if (is_named && !find_value(tensors.config, "model.family"))
    std::ranges::move(recorded_model(map, tensors), std::back_inserter(tensors.config));
  return counts;
}

}  // namespace gxp

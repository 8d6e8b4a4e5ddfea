#include "lib/text/files/tokenizer_json.h"

namespace gxp {
namespace {

constexpr int kMaxSequenceDepth = 8;

void add_steps(const Json& block, const char* key, int depth, const std::string& where,
               std::vector<const Json*>& steps) {
  if (block.is_null()) return;
  if (type_in(block, where) != "Sequence") {
    steps.push_back(&block);
    return;
  }
  if (depth > kMaxSequenceDepth) refuse_text(where, "it has sequences in sequences in sequences");
  for (const Json& step : to_array(member(block, key, where), where))
    add_steps(step, key, depth + 1, where, steps);
}

}  // namespace

void refuse_text(const std::string& where, std::string_view what) {
  fail(ErrorKind::kConfig, "{}: {}, which gxp does not compute", where, what);
}

const Json& member_or_null(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

bool flag(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  if (!value.is_boolean())
    fail(ErrorKind::kCorrupt, "{}: '{}' is neither true nor false", where, key);
  return value.get<bool>();
}

bool flag(const Json& object, const char* key, bool otherwise, const std::string& where) {
  return member_or_null(object, key).is_null() ? otherwise : flag(object, key, where);
}

std::string type_in(const Json& block, const std::string& where) {
  return to_text(member(block, "type", where), where);
}

std::vector<const Json*> steps_of(const Json& block, const char* key, const std::string& where) {
  std::vector<const Json*> steps;
  add_steps(block, key, 0, where, steps);
  return steps;
}

PatternJson read_pattern(const Json& step, const std::string& where) {
  const Json& pattern = to_object(member(step, "pattern", where), where);
  const bool is_regex = pattern.contains("Regex");
  PatternJson read = {is_regex,
                      to_text(member(pattern, is_regex ? "Regex" : "String", where), where)};
  if (read.text.empty()) refuse_text(where, "it has an empty pattern");
  return read;
}

}  // namespace gxp

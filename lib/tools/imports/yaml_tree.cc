#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/tools/imports/syntax.h"

namespace gxp {
namespace {

// Aliases make a node of a few bytes as large as the author likes.
constexpr size_t kMaxNodes = 100'000;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> lower) {
  // PyYAML knows the words in lower and upper case, and with a capital; not in other mixtures.
  const std::string low = lower_case(word);
  const bool mixed = word.size() > 1 && lower_case(word.substr(1)) != word.substr(1) &&
                     std::ranges::any_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
  return !mixed && std::ranges::find(lower, low) != lower.end();
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '_'; });
}

// [-+]?DIGITS; with a leading 0 octal.
bool is_integer(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return is_digits(word) && word[0] != '_';
}

// [-+]?DIGITS.DIGITS*([eE][-+]DIGITS)?, or without the digits before the point.
bool is_float(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  const size_t point = word.find('.');
  if (point == std::string_view::npos) return false;
  const size_t exponent = std::min(word.find_first_of("eE"), word.size());
  if (exponent < point) return false;
  const std::string_view before = word.substr(0, point);
  const std::string_view after = word.substr(point + 1, exponent - point - 1);
  const std::string_view power = word.substr(std::min(exponent + 1, word.size()));
  const bool has_power = exponent < word.size();
  if (has_power &&
      (power.size() < 2 || (power[0] != '+' && power[0] != '-') || !is_digits(power.substr(1))))
    return false;
  return (before.empty() ? !after.empty() : is_digits(before)) &&
         (after.empty() || is_digits(after));
}

std::string without_underscores(std::string_view word) {
  std::string digits(word.substr(word.starts_with('+') ? 1 : 0));
  std::erase(digits, '_');
  return digits;
}

SourceTree to_integer(std::string_view word) {
  const std::string digits = without_underscores(word);
  const bool octal = digits.find_first_not_of("-0") != std::string::npos &&
                     digits[digits.starts_with('-') ? 1 : 0] == '0';
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value, octal ? 8 : 10);
  if (result.ec == std::errc() && result.ptr == end) return value;
  return SourceTree(std::string(word));
}

SourceTree to_scalar(const YAML::Node& node) {
  const std::string& word = node.Scalar();
  if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return word;  // quoted, or !!str
  if (word.empty() || word == "~" || is_one_of(word, {"null"})) return nullptr;
  if (is_one_of(word, {"yes", "true", "on"})) return true;
  if (is_one_of(word, {"no", "false", "off"})) return false;
  if (is_integer(word)) return to_integer(word);
  if (is_float(word)) {
    const std::string digits = without_underscores(word);
    double value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (std::isfinite(value)) return value;
  }
  return word;
}

class YamlReader {
 public:
  explicit YamlReader(const std::string& path) : path_(path) {}

  SourceTree to_tree(const YAML::Node& node, int depth) {
    if (depth > kMaxSourceDepth) wrong(node, fmt::format("nested deeper than {}", kMaxSourceDepth));
    if (++nodes_ > kMaxNodes) wrong(node, fmt::format("more than {} values", kMaxNodes));
    check_tag(node);
    if (node.IsMap()) return to_object(node, depth);
    if (node.IsSequence()) {
      SourceTree list = SourceTree::array();
      for (const YAML::Node& each : node) list.push_back(to_tree(each, depth + 1));
      return list;
    }
    return node.IsScalar() ? to_scalar(node) : SourceTree(nullptr);
  }

 private:
  // "?" and "!" are of values without a tag.
  void check_tag(const YAML::Node& node) const {
    constexpr std::array<std::string_view, 7> kTags = {"str",  "int", "float", "bool",
                                                       "null", "map", "seq"};
    constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
    const std::string& tag = node.Tag();
    if (tag.empty() || tag == "?" || tag == "!") return;
    if (!tag.starts_with(kPrefix) ||
        std::ranges::find(kTags, std::string_view(tag).substr(kPrefix.size())) == kTags.end())
      wrong(node, fmt::format("the tag '{}' is none of YAML's own", tag));
  }

  [[noreturn]] void wrong(const YAML::Node& node, std::string_view what) const {
    fail(ErrorKind::kConfig, "{}:{}: {}", path_, node.Mark().line + 1, what);
  }

  SourceTree to_object(const YAML::Node& node, int depth) {
    SourceTree object = SourceTree::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) wrong(entry.first, "a key is not a word");
      const std::string& key = entry.first.Scalar();
      if (object.contains(key)) wrong(entry.first, fmt::format("the key '{}' occurs twice", key));
      object[key] = to_tree(entry.second, depth + 1);
    }
    return object;
  }

  const std::string& path_;
  size_t nodes_ = 0;
};

}  // namespace

SourceTree parse_yaml_tree(const std::string& text, const std::string& path) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) fail(ErrorKind::kConfig, "{}: holds more than one document", path);
    return YamlReader(path).to_tree(documents.empty() ? YAML::Node() : documents[0], 0);
  } catch (const YAML::ParserException& error) {
    fail(ErrorKind::kConfig, "{}:{}: {}", path, error.mark.line + 1, error.msg);
  } catch (const YAML::Exception& error) {
    fail(ErrorKind::kConfig, "{}: {}", path, error.what());
  }
}

}  // namespace gxp

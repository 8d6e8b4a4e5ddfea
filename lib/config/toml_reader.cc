#include "lib/config/toml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/text/toml_text.h"
#include "lib/base/toml_library.h"

namespace gxp {
namespace {

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    auto code = static_cast<unsigned char>(c);
    if (c == '\xc2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0)
      code = static_cast<unsigned char>(text[++at]);  // U+0080 to U+009F, which terminals obey
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
      quoted += fmt::format("\\u{:04X}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

struct ToToml {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const {
    std::string text = fmt::format("{}", value);  // the shortest digits that read back exactly
    const bool integral = std::isfinite(value) && text.find_first_of(".e") == std::string::npos;
    return integral ? text + ".0" : text;
  }
  std::string operator()(const std::string& value) const { return quote(value); }
  std::string operator()(const std::vector<std::string>& values) const {
    std::string text = "[";
    for (const std::string& value : values) text += (text.size() > 1 ? ", " : "") + quote(value);
    return text + "]";
  }
  std::string operator()(const std::vector<double>& values) const {
    std::string text = "[";
    for (const double value : values) text += (text.size() > 1 ? ", " : "") + (*this)(value);
    return text + "]";
  }
};

// Integers and others alike; nothing if it has something else, or nothing at all.
std::optional<Value> to_number_list(const toml::array& array) {
  std::vector<double> list;
  for (const toml::node& element : array) {
    if (!element.is_number()) return std::nullopt;
    list.push_back(*element.value<double>());
  }
  if (list.empty()) return std::nullopt;
  return list;
}

std::optional<Value> to_text_list(const toml::array& array) {
  std::vector<std::string> list;
  for (const toml::node& element : array) {
    const auto* text = element.as_string();
    if (text == nullptr) return std::nullopt;
    list.push_back(text->get());
  }
  return list;
}

std::optional<Value> to_value(const toml::node& node) {
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* array = node.as_array()) {
    auto numbers = to_number_list(*array);
    return numbers ? numbers : to_text_list(*array);
  }
  return std::nullopt;
}

std::string kind_of(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list of neither strings nor numbers";
  return "a date or time";
}

int line_of(const toml::node& node) { return int(node.source().begin.line); }

TomlEntry to_entry(const std::string& section, const toml::key& key, const toml::node& node) {
  TomlEntry entry{section, std::string(key.str()), line_of(node), to_value(node), ""};
  if (!entry.value) entry.kind = kind_of(node);
  return entry;
}

}  // namespace

std::string to_toml(const Value& value) { return std::visit(ToToml{}, value); }

TomlDocument parse_toml(std::string_view text) {
  TomlDocument document;
  if (const auto flaw = find_toml_flaw(text)) {
    document.syntax_error = flaw->what;
    document.syntax_error_line = flaw->line;
    return document;
  }
  try {
    const toml::table root = toml::parse(text);
    for (const auto& [key, node] : root) {
      const toml::table* table = node.as_table();
      if (table == nullptr) {
        document.entries.push_back(to_entry("", key, node));
        continue;
      }
      const std::string section(key.str());
      document.sections.push_back({section, line_of(node)});
      for (const auto& [name, value] : *table) {
        document.entries.push_back(to_entry(section, name, value));
      }
    }
  } catch (const toml::parse_error& error) {
    document = {};
    document.syntax_error = error.description();
    document.syntax_error_line = int(error.source().begin.line);
  } catch (const TomlAssertion&) {
    document = {};
    document.syntax_error = kTomlAssertion;
    document.syntax_error_line = 1;
  }
  std::ranges::stable_sort(document.entries, {}, &TomlEntry::line);
  return document;
}

std::optional<Value> parse_toml_value(std::string_view text) {
  const TomlDocument document = parse_toml("value = " + std::string(text));
  if (document.entries.size() != 1 || !document.sections.empty()) return std::nullopt;
  return document.entries[0].value;
}

}  // namespace gxp

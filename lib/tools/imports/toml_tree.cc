#include <algorithm>
#include <vector>

#include "lib/base/toml_library.h"
#include "lib/tools/imports/syntax.h"

namespace gxp {
namespace {

SourceTree from_toml(const toml::node& node);

// toml++ sorts keys by name; this restores the order of the file.
SourceTree object_of(const toml::table& table) {
  struct Entry {
    toml::source_index line;
    std::string key;
    const toml::node* node;
  };
  std::vector<Entry> entries;
  for (const auto& [key, node] : table)
    entries.push_back({key.source().begin.line, std::string(key.str()), &node});
  std::ranges::stable_sort(entries, {}, &Entry::line);
  SourceTree object = SourceTree::object();
  for (const Entry& entry : entries) object[entry.key] = from_toml(*entry.node);
  return object;
}

SourceTree from_toml(const toml::node& node) {
  if (const auto* table = node.as_table()) return object_of(*table);
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* list = node.as_array()) {
    SourceTree array = SourceTree::array();
    for (const toml::node& element : *list) array.push_back(from_toml(element));
    return array;
  }
  return "a date or time";  // which no key takes
}

}  // namespace

// toml++ limits the nesting of values itself, and find_toml_flaw() that of keys.
SourceTree parse_toml_tree(std::string_view text, const std::string& path) {
  return object_of(parse_toml_or_fail(text, path));
}

}  // namespace gxp

// Whether two XML texts say the same.
#pragma once

#include <map>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "lib/tools/topology/read/xml_text.h"

namespace gxp {

inline bool same_value(std::string_view a, std::string_view b) {
  return a == b || (parse_number(a).has_value() && parse_number(a) == parse_number(b));
}

inline bool same_attributes(const pugi::xml_node& a, const pugi::xml_node& b) {
  std::multimap<std::string, std::string> of_a;
  std::multimap<std::string, std::string> of_b;
  for (const auto& attribute : a.attributes()) of_a.emplace(attribute.name(), attribute.value());
  for (const auto& attribute : b.attributes()) of_b.emplace(attribute.name(), attribute.value());
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first && same_value(one.second, other.second);
                    });
}

// Elements in their order with attributes in any; numbers may be written differently. The first
// that differs is written to `where`.
inline bool same_elements(const pugi::xml_node& a, const pugi::xml_node& b, std::string& where) {
  where = a.path() + " " + a.attribute("busid").value();
  if (std::string_view(a.name()) != b.name() || !same_attributes(a, b)) return false;
  pugi::xml_node in_b = b.first_child();
  for (const pugi::xml_node in_a : a.children()) {
    if (!in_b || !same_elements(in_a, in_b, where)) return false;
    in_b = in_b.next_sibling();
  }
  return !in_b;
}

inline std::string first_difference(const std::string& a, const std::string& b) {
  pugi::xml_document one;
  pugi::xml_document other;
  if (!one.load_string(a.c_str()) || !other.load_string(b.c_str())) return "not XML";
  std::string where;
  return same_elements(one.document_element(), other.document_element(), where) ? "" : where;
}

}  // namespace gxp

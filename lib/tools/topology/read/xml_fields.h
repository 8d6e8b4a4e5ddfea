// Attributes of an XML element as fields of a struct: one table, for reading and writing.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "lib/tools/topology/read/xml_text.h"

namespace gxp {

template <class Info>
struct XmlField {
  std::string_view attribute;
  std::variant<std::string Info::*, std::optional<int> Info::*, std::optional<bool> Info::*,
               std::optional<double> Info::*, double Info::*>  // a double: 0 is unknown
      member;
  NumberRange range{0, INT32_MAX};
};

// Sets the field from the attribute and returns true; false if the attribute is empty, if the field
// already has a value, or if the value is 0 or less in a field where that means unknown. Errors: as
// XmlText::number().
template <class Info>
bool set_field(const XmlText& xml, const pugi::xml_node& node, const pugi::xml_attribute& attribute,
               const XmlField<Info>& field, Info& info) {
  const std::string_view text = attribute.value();
  if (text.empty()) return false;
  return std::visit(
      [&](auto member) {
        auto& value = info.*member;
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          if (!value.empty()) return false;
          value = text;
        } else if constexpr (std::is_same_v<Value, double>) {
          const double number = xml.number(node, attribute, field.range);
          if (number <= 0 || value != 0) return false;
          value = number;
        } else {
          if (value.has_value()) return false;
          value = typename Value::value_type(xml.number(node, attribute, field.range));
        }
        return true;
      },
      field.member);
}

// As NCCL writes numbers; a latency with six decimals, where that loses nothing.
std::string to_attribute(std::string_view name, double value);
inline std::string to_attribute(std::string_view /*name*/, int value) {
  return std::to_string(value);
}
inline std::string to_attribute(std::string_view /*name*/, bool value) { return value ? "1" : "0"; }

// Writes the known fields.
template <class Info, size_t kFields>
void write_fields(XmlWriter& xml, const std::array<XmlField<Info>, kFields>& fields,
                  const Info& info) {
  for (const XmlField<Info>& field : fields) {
    std::visit(
        [&](auto member) {
          const auto& value = info.*member;
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, std::string>) {
            if (!value.empty()) xml.attribute(field.attribute, value);
          } else if constexpr (std::is_same_v<Value, double>) {
            if (value != 0) xml.attribute(field.attribute, to_attribute(field.attribute, value));
          } else {
            if (value) xml.attribute(field.attribute, to_attribute(field.attribute, *value));
          }
        },
        field.member);
  }
}

}  // namespace gxp

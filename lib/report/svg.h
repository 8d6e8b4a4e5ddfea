// One SVG document, written element by element.
//   Units    pixels, y downwards; numbers are written to a tenth.
//   Escapes  texts, tips and the values of attributes are escaped, whatever is in them.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gxp {

class Svg {
 public:
  struct Attribute {
    template <class Number>
    requires std::is_arithmetic_v<Number> Attribute(std::string_view of, Number value)
        : name(of), text(number(double(value))) {}
    Attribute(std::string_view of, std::string_view value);
    std::string_view name;
    std::string text;  // as written into the document
  };
  using Attributes = std::initializer_list<Attribute>;

  // On white. `attributes` are those of the whole, such as its font; `css` is a style sheet.
  Svg(double width, double height, Attributes attributes, std::string_view title = "",
      std::string_view css = "");

  // <rect .../> or the like, without the attributes whose value is "". A tip, if there is one,
  // shows when the element is pointed at.
  void add(std::string_view element, Attributes attributes, std::string_view tip = "");
  void add_text(Attributes attributes, std::string_view words);
  [[nodiscard]] std::string finish() && { return std::move(svg_) + "</svg>\n"; }

  // "12.5", "12".
  static std::string number(double value);

 private:
  void open(std::string_view element, Attributes attributes);
  void add_attributes(Attributes attributes);

  std::string svg_;
};

}  // namespace gxp

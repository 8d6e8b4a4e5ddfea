#include "lib/report/svg.h"

#include "lib/base/text/xml_escape.h"

namespace gxp {

Svg::Attribute::Attribute(std::string_view of, std::string_view value)
    : name(of), text(safe_for_xml(value)) {}

std::string Svg::number(double value) {
  std::string text = fmt::format("{:.1f}", value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

Svg::Svg(double width, double height, Attributes attributes, std::string_view title,
         std::string_view css) {
  const std::string view_box = fmt::format("0 0 {} {}", number(width), number(height));
  open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
               {"viewBox", view_box},
               {"width", width},
               {"height", height}});
  add_attributes(attributes);
  svg_ += ">\n";
  if (!title.empty()) svg_ += fmt::format("<title>{}</title>\n", safe_for_xml(title));
  if (!css.empty()) svg_ += fmt::format("<style>{}</style>\n", css);
  add("rect", {{"width", width}, {"height", height}, {"style", "fill:#fff"}});
}

void Svg::open(std::string_view element, Attributes attributes) {
  svg_ += fmt::format("<{}", element);
  add_attributes(attributes);
}

void Svg::add_attributes(Attributes attributes) {
  for (const Attribute& one : attributes) {
    if (!one.text.empty()) svg_ += fmt::format(" {}=\"{}\"", one.name, one.text);
  }
}

void Svg::add(std::string_view element, Attributes attributes, std::string_view tip) {
  open(element, attributes);
  svg_ +=
      tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", safe_for_xml(tip), element);
}

void Svg::add_text(Attributes attributes, std::string_view words) {
  open("text", attributes);
  svg_ += fmt::format(">{}</text>\n", safe_for_xml(words));
}

}  // namespace gxp

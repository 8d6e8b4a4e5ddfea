#include "lib/replay/svg.h"

namespace gxp {

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else
      escaped += c;
  }
  return escaped;
}

Svg::Svg(int width, int height, std::string_view title) {
  svg_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      width, height);
  text(16, 22, title);
}

void Svg::rectangle(double x, double y, double width, double height, std::string_view colour,
                    std::string_view tip) {
  svg_ += fmt::format(R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}")", x,
                      y, width, height, colour);
  svg_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escape_xml(tip));
}

void Svg::polygon(std::string_view points, std::string_view colour) {
  svg_ += fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", points, colour);
}

void Svg::line(double x1, double y1, double x2, double y2) {
  svg_ += fmt::format(
      "<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"#bbb\"/>\n", x1, y1,
      x2, y2);
}

void Svg::text(double x, double y, std::string_view words, std::string_view anchor) {
  svg_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                      anchor, escape_xml(words));
}

}  // namespace gxp

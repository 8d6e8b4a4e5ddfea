// The few pieces of SVG that drawings of runs are made of.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace gxp {

std::string escape_xml(std::string_view text);

// A document that grows; sizes are in pixels.
class Svg {
 public:
  Svg(int width, int height, std::string_view title);
  // A whole element, with a tool tip if `tip` is not empty.
  void rectangle(double x, double y, double width, double height, std::string_view colour,
                 std::string_view tip = {});
  void polygon(std::string_view points, std::string_view colour);
  void line(double x1, double y1, double x2, double y2);
  // `anchor`: start, middle or end.
  void text(double x, double y, std::string_view words, std::string_view anchor = "start");
  [[nodiscard]] std::string finish() && { return std::move(svg_) + "</svg>\n"; }

 private:
  std::string svg_;
};

}  // namespace gxp

#include "lib/tools/topology/view/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lib/base/text/utf8.h"
#include "lib/report/svg.h"

namespace gxp {
namespace {

// Advances of DejaVu Sans 2.37 in thousandths of the font size, from ' ' to '~'.
constexpr std::array<uint16_t, 95> kRegular = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
constexpr std::array<uint16_t, 95> kBold = {
    348,  456, 521, 838, 696, 1002, 872, 306,  457, 457, 523, 838, 380, 415,  380, 365,
    696,  696, 696, 696, 696, 696,  696, 696,  696, 696, 400, 400, 838, 838,  838, 580,
    1000, 774, 762, 734, 830, 683,  683, 821,  837, 372, 372, 775, 637, 995,  837, 850,
    733,  850, 770, 720, 682, 812,  774, 1103, 771, 724, 725, 457, 365, 457,  838, 500,
    500,  675, 716, 593, 716, 678,  435, 716,  712, 343, 343, 665, 343, 1042, 712, 687,
    716,  716, 493, 595, 478, 712,  652, 924,  645, 652, 582, 712, 365, 712,  838};
constexpr double kOther = 1.0;  // of the font size

double advance(char first, Font font) {
  if (first < ' ' || first > '~') return kOther * font.size;
  return (font.bold ? kBold : kRegular)[size_t(first - ' ')] * font.size / 1000;
}

struct BoxRow {
  std::string_view name;
  std::string_view css;
  double corner;
};

// In the order of BoxStyle.
constexpr std::array<BoxRow, 11> kBoxRows = {{
    {"numa", "fill:#f3f5f8;stroke:#7a8494", 8},
    {"numa-head", "fill:#d5dce6;stroke:#7a8494", 8},
    {"switch", "fill:#fff;stroke:#98a1ad", 5},
    {"switch-head", "fill:#e6e9ee;stroke:#98a1ad", 5},
    {"gpu", "fill:#e3f1d3;stroke:#3f6b12;stroke-width:2", 3},
    {"nic", "fill:#dcebfa;stroke:#2b5c8f", 14},
    {"device", "fill:#f6f6f6;stroke:#888;stroke-dasharray:4 2", 3},
    {"link-switch", "fill:#cfe5b4;stroke:#3f6b12;stroke-width:2", 3},
    {"interconnect", "fill:#fff;stroke:#7a8494;stroke-dasharray:2 2", 8},
    {"network-switch", "fill:#fbe9cf;stroke:#8f5d10;stroke-width:1.5", 3},
    {"host", "fill:#f3f5f8;stroke:#555", 8},
}};

struct LineRow {
  std::string_view name;
  std::string_view css;
};

// In the order of LineStyle.
constexpr std::array<LineRow, 5> kLineRows = {{
    {"pcie", "stroke:#4a5362"},
    {"gpu-link", "stroke:#3f6b12"},
    {"inter-numa", "stroke:#7a8494;stroke-dasharray:2 3"},
    {"network", "stroke:#8f5d10"},
    {"unknown", "stroke:#4a5362;stroke-dasharray:6 4"},
}};

void draw(Svg& svg, const DrawnBox& box) {
  const BoxRow& row = kBoxRows[size_t(box.style)];
  svg.add("rect",
          {{"class", row.name},
           {"x", box.area.x},
           {"y", box.area.y},
           {"width", box.area.width},
           {"height", box.area.height},
           {"rx", row.corner}},
          box.tip);
}

void draw(Svg& svg, const DrawnLine& line) {
  std::string path;
  for (const Point& point : line.points) {
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", Svg::number(point.x),
                        Svg::number(point.y));
  }
  const std::string_view name = kLineRows[size_t(line.style)].name;
  const bool has_strands = line.style == LineStyle::kGpuLink && line.strands > 0;
  double width = has_strands ? kStrandPitch * line.strands - 1 : line.width;
  const int strands = line.strands == 0 ? 2 : line.strands;
  svg.add("path", {{"class", name}, {"d", path}, {"stroke-width", width}}, line.tip);
  // Each narrower stroke leaves a strand on either side of it.
  for (int i = 1; i < strands; ++i) {
    width -= kStrandPitch;
    const bool is_core = i % 2 == 1;
    svg.add("path", {{"class", is_core ? "core" : name}, {"d", path}, {"stroke-width", width}});
  }
}

void draw(Svg& svg, const DrawnText& text) {
  const bool has_size = text.font.size != Font{}.size;
  svg.add_text({{"x", text.at.x},
                {"y", text.at.y},
                {"font-size", has_size ? Svg::number(text.font.size) : ""},
                {"font-weight", text.font.bold ? "bold" : ""},
                {"text-anchor", text.anchor == Anchor::kMiddle ? "middle" : ""}},
               text.text);
}

std::string style_sheet() {
  std::string css = "rect{stroke-width:1}path{fill:none}.core{stroke:#fff}\n";
  for (const BoxRow& row : kBoxRows) css += fmt::format(".{}{{{}}}\n", row.name, row.css);
  for (const LineRow& row : kLineRows) css += fmt::format(".{}{{{}}}\n", row.name, row.css);
  return css;
}

}  // namespace

double text_width(std::string_view utf8, Font font) {
  double width = 0;
  for (const char c : utf8) {
    if (!continues_utf8(c)) width += advance(c, font);
  }
  return width;
}

std::string fit_text(std::string_view utf8, double width, Font font) {
  if (text_width(utf8, font) <= width) return std::string(utf8);
  constexpr std::string_view kCut = "...";
  double taken = text_width(kCut, font);
  size_t end = 0;
  for (size_t i = 0; i < utf8.size(); ++i) {
    if (!continues_utf8(utf8[i])) {
      end = i;
      taken += advance(utf8[i], font);
    }
    if (taken > width) break;
  }
  return std::string(utf8.substr(0, end)).append(kCut);
}

Area DrawnText::area() const {
  const double width = text_width(text, font);
  const double left = anchor == Anchor::kMiddle ? at.x - width / 2 : at.x;
  // Ascent and descent of DejaVu Sans.
  return {left, at.y - 0.76 * font.size, width, font.size};
}

void Picture::add(const Picture& other, Point by) {
  for (DrawnBox box : other.boxes) {
    box.area.x += by.x;
    box.area.y += by.y;
    boxes.push_back(std::move(box));
  }
  for (DrawnLine line : other.lines) {
    for (Point& point : line.points) point = {point.x + by.x, point.y + by.y};
    lines.push_back(std::move(line));
  }
  for (DrawnText text : other.texts) {
    text.at = {text.at.x + by.x, text.at.y + by.y};
    texts.push_back(std::move(text));
  }
}

double line_width(double gb_per_s) {
  constexpr double kThin = 1;
  constexpr double kThick = 12;
  constexpr double kPerRoot = 0.45;  // 63 GB/s: 3.6; 450 GB/s: 9.5
  return gb_per_s > 0 ? std::clamp(kPerRoot * std::sqrt(gb_per_s), kThin, kThick) : kThin;
}

std::string to_svg(const Picture& picture) {
  Svg svg(picture.width, picture.height,
          {{"font-family", kFontFamilies}, {"font-size", Font{}.size}}, picture.title,
          style_sheet());
  for (const DrawnBox& box : picture.boxes) draw(svg, box);
  for (const DrawnLine& line : picture.lines) draw(svg, line);
  for (const DrawnText& text : picture.texts) draw(svg, text);
  return std::move(svg).finish();
}

}  // namespace gxp

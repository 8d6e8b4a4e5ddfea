#include "lib/inspect/view/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lib/base/text.h"

namespace gxp {
namespace {

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

bool may_stand_in_xml(char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\n'; }

// The bytes of the character that begins at `i`; 0 if it is no UTF-8.
size_t character_length(std::string_view text, size_t i) {
  const auto first = static_cast<unsigned char>(text[i]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((static_cast<unsigned char>(text[i + k]) & 0xC0u) != 0x80u) return 0;
  }
  // Surrogates and longer forms than needed are no characters.
  const auto second = length > 2 ? static_cast<unsigned char>(text[i + 1]) : 0;
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ||
                     (first == 0xEF && second == 0xBF && text[i + 2] >= char(0xBE));
  return wrong ? 0 : length;
}

std::string number(double value) {
  std::string text = fmt::format("{:.1f}", value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string tip_element(const std::string& tip) {
  return tip.empty() ? "/>\n" : fmt::format("><title>{}</title>", to_xml_text(tip));
}

std::string to_element(const DrawnBox& box) {
  const BoxRow& row = kBoxRows[size_t(box.style)];
  std::string element =
      fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="{}")", row.name,
                  number(box.area.x), number(box.area.y), number(box.area.width),
                  number(box.area.height), number(row.corner));
  element += tip_element(box.tip);
  return box.tip.empty() ? element : element + "</rect>\n";
}

std::string to_element(const DrawnLine& line) {
  std::string path;
  for (const Point& point : line.points) {
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", number(point.x), number(point.y));
  }
  const std::string_view name = kLineRows[size_t(line.style)].name;
  const bool has_strands = line.style == LineStyle::kGpuLink && line.strands > 0;
  double width = has_strands ? kStrandPitch * line.strands - 1 : line.width;
  const int strands = line.strands == 0 ? 2 : line.strands;
  std::string element =
      fmt::format(R"(<path class="{}" d="{}" stroke-width="{}")", name, path, number(width));
  element += tip_element(line.tip);
  if (!line.tip.empty()) element += "</path>\n";
  // Each narrower stroke leaves a strand on either side of it.
  for (int i = 1; i < strands; ++i) {
    width -= kStrandPitch;
    const bool is_core = i % 2 == 1;
    element += fmt::format("<path class=\"{}\" d=\"{}\" stroke-width=\"{}\"/>\n",
                           is_core ? "core" : name, path, number(width));
  }
  return element;
}

std::string to_element(const DrawnText& text) {
  return fmt::format(
      "<text x=\"{}\" y=\"{}\"{}{}{}>{}</text>\n", number(text.at.x), number(text.at.y),
      text.font.size == Font{}.size ? "" : fmt::format(" font-size=\"{}\"", number(text.font.size)),
      text.font.bold ? " font-weight=\"bold\"" : "",
      text.anchor == Anchor::kMiddle ? " text-anchor=\"middle\"" : "", to_xml_text(text.text));
}

std::string style_sheet() {
  std::string css = "rect{stroke-width:1}path{fill:none}.core{stroke:#fff}\n";
  for (const BoxRow& row : kBoxRows) css += fmt::format(".{}{{{}}}\n", row.name, row.css);
  for (const LineRow& row : kLineRows) css += fmt::format(".{}{{{}}}\n", row.name, row.css);
  return css;
}

}  // namespace

Area DrawnText::area() const {
  const double width = text_width(text, font);
  const double left = anchor == Anchor::kMiddle ? at.x - width / 2 : at.x;
  // What stands above and below the base line, of DejaVu Sans.
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

std::string to_xml_text(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t length = character_length(text, i);
    const std::string_view character = text.substr(i, std::max<size_t>(length, 1));
    i += character.size();
    if (length == 0 || !may_stand_in_xml(character[0])) {
      result += '?';
    } else {
      result += escaped_for_xml(character);
    }
  }
  return result;
}

std::string to_svg(const Picture& picture) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"{2}\" font-size=\"{3}\">\n<title>{4}</title>\n"
      "<style>{5}</style>\n<rect width=\"{0}\" height=\"{1}\" style=\"fill:#fff\"/>\n",
      number(picture.width), number(picture.height), kFontFamilies, number(Font{}.size),
      to_xml_text(picture.title), style_sheet());
  for (const DrawnBox& box : picture.boxes) svg += to_element(box);
  for (const DrawnLine& line : picture.lines) svg += to_element(line);
  for (const DrawnText& text : picture.texts) svg += to_element(text);
  return svg + "</svg>\n";
}

}  // namespace gxp

// A picture with all places: boxes, lines and text, before they are SVG. Layouts make it; tests
// look for text that leaves its box or that a line crosses.
//   Units  pixels, y downwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

// How much room text takes, so that boxes can be made to fit before anything is drawn.
//   Units  pixels, as the font size.
struct Font {
  double size = 10;
  bool bold = false;
};

// In DejaVu Sans, the widest of the fonts that kFontFamilies names; a character beyond ASCII counts
// as wide as the widest letter.
double text_width(std::string_view utf8, Font font);
// The text, or as much of its start as fits into `width`, with "..." behind it.
std::string fit_text(std::string_view utf8, double width, Font font);

inline constexpr std::string_view kFontFamilies = "DejaVu Sans, Verdana, Arial, sans-serif";

struct Point {
  double x = 0;
  double y = 0;
};

struct Area {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  [[nodiscard]] double right() const { return x + width; }
  [[nodiscard]] double bottom() const { return y + height; }
  [[nodiscard]] double middle_x() const { return x + width / 2; }
  [[nodiscard]] double middle_y() const { return y + height / 2; }
};

enum class BoxStyle : uint8_t {
  kNumaNode,
  kNumaHead,
  kSwitch,
  kSwitchHead,
  kGpu,
  kNic,
  kDevice,
  kLinkSwitch,    // NVSwitches, or links between all GPUs
  kInterconnect,  // between NUMA nodes
  kNetworkSwitch,
  kHost,
};

// Distinguishable without colour: solid, hollow, dotted or dashed.
enum class LineStyle : uint8_t { kPcie, kGpuLink, kInterNuma, kNetwork, kUnknown };

// The style of all pictures.
inline constexpr Font kTitleFont{.size = 17, .bold = true};
inline constexpr Font kNameFont{.size = 12, .bold = true};
inline constexpr Font kTextFont{.size = 11};
inline constexpr double kMargin = 20;
inline constexpr double kTitleHeight = 50;

enum class Anchor : uint8_t { kStart, kMiddle };

struct DrawnBox {
  Area area{};
  BoxStyle style = BoxStyle::kDevice;
  std::string tip{};  // shown when pointed at; "": none
};

struct DrawnLine {
  std::vector<Point> points{};  // joined by straight lines
  double width = 1;
  LineStyle style = LineStyle::kPcie;
  // A kGpuLink is drawn as this many strands of kStrandPitch, whatever `width`; 0: a hollow line.
  int strands = 1;
  std::string tip{};
};

struct DrawnText {
  Point at{};  // of the base line
  std::string text{};
  Font font{};
  Anchor anchor = Anchor::kStart;
  [[nodiscard]] Area area() const;
};

// Later boxes are drawn over earlier ones, lines over boxes, text over all.
struct Picture {
  std::string title{};
  double width = 0;
  double height = 0;
  std::vector<DrawnBox> boxes{};
  std::vector<DrawnLine> lines{};
  std::vector<DrawnText> texts{};

  // Puts all of `other` here, moved by `by`.
  void add(const Picture& other, Point by);
};

inline constexpr double kStrandPitch = 3;

// The total width of elements side by side.
template <class Things, class WidthOf>
double row_width(const Things& things, double gap, const WidthOf& width_of) {
  double width = -gap;
  for (const auto& one : things) width += width_of(one) + gap;
  return width;
}

// One line's width for what it carries each way; a thin one if that is unknown (0).
double line_width(double gb_per_s);

std::string to_svg(const Picture& picture);

}  // namespace gxp

// How much room text takes, so that boxes can be made to fit before anything is drawn.
//   Units  pixels, as the font size.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

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

}  // namespace gxp

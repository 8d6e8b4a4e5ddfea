#include "lib/tools/topology/view/text_width.h"

#include <array>
#include <cstdint>

#include "lib/base/text/utf8.h"

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

}  // namespace gxp

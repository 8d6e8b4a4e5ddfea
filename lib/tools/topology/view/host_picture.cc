// draw_host().

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/text/plural.h"
#include "lib/tools/topology/view/host_layout.h"
#include "lib/tools/topology/view/topology_picture.h"

namespace gxp {
namespace {

constexpr double kBarHeight = 24;
constexpr double kBarGap = 26;     // between a bar and the boxes it is joined to
constexpr double kRowHeight = 16;  // of bundles
constexpr double kLegendRow = 20;
constexpr double kLegendGap = 24;
constexpr double kSample = 34;  // width of a line in the legend
constexpr double kLeastWidth = 420;

struct LegendItem {
  LineStyle style;
  double gb_per_s;
  std::string text;
  int strands = 1;
};

// One strand a link, if there are few enough to count.
int strands_of(int links) {
  constexpr int kMostStrands = 4;
  return links <= kMostStrands ? links : 0;
}

class Drawing {
 public:
  explicit Drawing(const Diagram& diagram) : diagram_(diagram), layout_(diagram) {}

  Picture draw() {
    picture_.width = std::max(layout_.width(), kLeastWidth) + 2 * kMargin;
    picture_.title = diagram_.title;
    write_title();
    const double first = y_;
    if (!diagram_.inter_numa.empty()) y_ += kBarHeight + kBarGap;
    layout_.draw({(picture_.width - layout_.width()) / 2, y_}, picture_);
    if (!diagram_.inter_numa.empty()) draw_inter_numa(first);
    y_ += layout_.height();
    for (const LinkSwitch& all : diagram_.link_switches) draw_link_switch(all);
    draw_bundles();
    draw_legend();
    picture_.height = y_ + kMargin;
    return std::move(picture_);
  }

 private:
  struct Bracket {
    const Bundle* bundle;
    double left;  // of the gap that its GPUs lie around
    double right;
    size_t row = 0;
  };

  // Where a bracket meets its two GPUs.
  struct BracketEnds {
    double from_x = 0;
    double to_x = 0;
  };

  void write_title() {
    const double room = picture_.width - 2 * kMargin;
    picture_.texts.push_back(
        {{kMargin, y_ + 14}, fit_text(diagram_.title, room, kTitleFont), kTitleFont});
    picture_.texts.push_back(
        {{kMargin, y_ + 32}, fit_text(diagram_.subtitle, room, kTextFont), kTextFont});
    y_ += kTitleHeight;
  }

  void draw_bar(const Area& area, BoxStyle style, const std::string& text) {
    picture_.boxes.push_back({area, style, text});
    picture_.texts.push_back({{area.middle_x(), area.middle_y() + 4},
                              fit_text(text, area.width - 12, kTextFont),
                              kTextFont,
                              Anchor::kMiddle});
  }

  void draw_inter_numa(double top) {
    const Area first = area_of(diagram_.roots.front());
    const Area last = area_of(diagram_.roots.back());
    const Area bar{first.x, top, last.right() - first.x, kBarHeight};
    draw_bar(bar, BoxStyle::kInterconnect, diagram_.inter_numa);
    for (const BoxId root : diagram_.roots) {
      if (diagram_.boxes[root].part == kNoPart) continue;
      const Area area = area_of(root);
      picture_.lines.push_back(
          {.points = {{area.middle_x(), bar.bottom()}, {area.middle_x(), area.y}},
           .width = 4,
           .style = LineStyle::kInterNuma});
    }
  }

  void draw_link_switch(const LinkSwitch& all) {
    double left = picture_.width - kMargin;
    double right = kMargin;
    for (const LinkSwitch::Port& port : all.ports) {
      left = std::min(left, area_of(port.gpu).x);
      right = std::max(right, area_of(port.gpu).right());
    }
    if (all.ports.empty()) std::swap(left, right);
    const double text = text_width(all.name, kTextFont) + 12;
    if (right - left < text) {
      left = std::clamp((left + right - text) / 2, kMargin, picture_.width - kMargin - text);
      right = left + text;
    }
    const Area bar{left, y_ + kBarGap, right - left, kBarHeight};
    draw_bar(bar, BoxStyle::kLinkSwitch, all.name);
    for (const LinkSwitch::Port& port : all.ports) {
      const Area gpu = area_of(port.gpu);
      picture_.lines.push_back(
          {.points = {{gpu.middle_x(), gpu.bottom() + 1}, {gpu.middle_x(), bar.y}},
           .width = line_width(port.gb_per_s),
           .style = LineStyle::kGpuLink,
           .strands = 0,
           .tip = fmt::format("{}: {} links, {} GB/s", diagram_.boxes[port.gpu].name, port.count,
                              format_gb_per_s(port.gb_per_s))});
    }
    y_ = bar.bottom();
  }

  // Sorted so that short ones lie above long ones; those that overlap lie in different rows.
  [[nodiscard]] std::vector<Bracket> brackets() const {
    std::vector<Bracket> all;
    for (const Bundle& bundle : diagram_.bundles) {
      const double a = area_of(bundle.from).middle_x();
      const double b = area_of(bundle.to).middle_x();
      all.push_back({.bundle = &bundle, .left = std::min(a, b), .right = std::max(a, b)});
    }
    std::ranges::stable_sort(
        all, {}, [](const Bracket& one) { return std::pair(one.right - one.left, one.left); });
    std::vector<std::vector<const Bracket*>> rows;
    for (Bracket& one : all) {
      const auto is_free = [&](const std::vector<const Bracket*>& row) {
        return std::ranges::all_of(row, [&](const Bracket* other) {
          return one.left >= other->right || one.right <= other->left;
        });
      };
      const auto row = std::ranges::find_if(rows, is_free);
      one.row = size_t(row - rows.begin());
      if (row == rows.end()) rows.emplace_back();
      rows[one.row].push_back(&one);
    }
    return all;
  }

  void draw_bracket(const Bracket& bracket, const BracketEnds& ends) {
    const Bundle& bundle = *bracket.bundle;
    const double y = y_ + kRowHeight * (double(bracket.row) + 1);
    const Area from = area_of(bundle.from);
    const Area to = area_of(bundle.to);
    picture_.lines.push_back(
        {.points = {{ends.from_x, from.bottom() + 1},
                    {ends.from_x, y},
                    {ends.to_x, y},
                    {ends.to_x, to.bottom() + 1}},
         .width = line_width(bundle.gb_per_s),
         .style = LineStyle::kGpuLink,
         .strands = strands_of(bundle.count),
         .tip = fmt::format("{} - {}: {} x {}, {} GB/s", diagram_.boxes[bundle.from].name,
                            diagram_.boxes[bundle.to].name, bundle.count, to_string(bundle.kind),
                            format_gb_per_s(bundle.gb_per_s))});
  }

  // Each GPU's ends lie side by side at its bottom: to the left for GPUs on the left, the longest
  // brackets in the middle, so that brackets of one GPU do not cross.
  [[nodiscard]] std::vector<BracketEnds> ends_of(const std::vector<Bracket>& all) const {
    struct End {
      double order;  // from the left
      double* x;
    };
    std::vector<BracketEnds> ends(all.size());
    std::map<BoxId, std::vector<End>> of_gpu;
    for (size_t i = 0; i < all.size(); ++i) {
      const Bundle& bundle = *all[i].bundle;
      const bool leads_right = area_of(bundle.from).x < area_of(bundle.to).x;
      const double order = (leads_right ? 1 : -1) / (double(all[i].row) + 1);
      of_gpu[bundle.from].push_back({order, &ends[i].from_x});
      of_gpu[bundle.to].push_back({-order, &ends[i].to_x});
    }
    for (auto& [gpu, list] : of_gpu) {
      std::ranges::stable_sort(list, {}, &End::order);
      const Area area = area_of(gpu);
      const double step = area.width / double(list.size() + 1);
      for (size_t k = 0; k < list.size(); ++k) *list[k].x = area.x + step * double(k + 1);
    }
    return ends;
  }

  void draw_bundles() {
    const std::vector<Bracket> all = brackets();
    if (all.empty()) return;
    y_ += 10;
    const std::vector<BracketEnds> ends = ends_of(all);
    size_t rows = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      draw_bracket(all[i], ends[i]);
      rows = std::max(rows, all[i].row + 1);
    }
    y_ += kRowHeight * double(rows) + 6;
  }

  [[nodiscard]] std::vector<LegendItem> legend() const {
    std::vector<LegendItem> items;
    if (!diagram_.usual_wire.label.empty()) {
      items.push_back(
          {LineStyle::kPcie, diagram_.usual_wire.gb_per_s,
           fmt::format("{}, {} GB/s, where a box says no other", diagram_.usual_wire.label,
                       format_gb_per_s(diagram_.usual_wire.gb_per_s))});
    }
    if (std::ranges::any_of(picture_.lines, [](const DrawnLine& line) {
          return line.style == LineStyle::kUnknown;
        }))
      items.push_back({LineStyle::kUnknown, 0, "bandwidth not known"});
    for (const LinkSwitch& all : diagram_.link_switches) {
      if (all.ports.empty()) continue;
      items.push_back({LineStyle::kGpuLink, all.ports[0].gb_per_s,
                       fmt::format("{} of a GPU, all together", to_string(all.kind)), 0});
    }
    std::map<std::pair<CrossLinkKind, int>, double> bundles;
    for (const Bundle& bundle : diagram_.bundles)
      bundles[{bundle.kind, bundle.count}] = bundle.gb_per_s;
    for (const auto& [what, gb_per_s] : bundles) {
      std::string text = counted(size_t(what.second), to_string(what.first));
      if (gb_per_s > 0) text += fmt::format(", {} GB/s", format_gb_per_s(gb_per_s));
      items.push_back({LineStyle::kGpuLink, gb_per_s, text, strands_of(what.second)});
    }
    return items;
  }

  void draw_legend() {
    y_ += kLegendGap;
    double x = kMargin;
    const auto place = [&](double width) {
      if (x > kMargin && x + width > picture_.width - kMargin) {
        x = kMargin;
        y_ += kLegendRow;
      }
      return std::exchange(x, x + width + kLegendGap);
    };
    for (const LegendItem& item : legend()) {
      const double left = place(kSample + 8 + text_width(item.text, kTextFont));
      picture_.lines.push_back({.points = {{left, y_}, {left + kSample, y_}},
                                .width = line_width(item.gb_per_s),
                                .style = item.style,
                                .strands = item.strands});
      picture_.texts.push_back({{left + kSample + 8, y_ + 4}, item.text, kTextFont});
    }
    const std::string note = "GB/s are of one direction; lines are as wide as they are fast";
    picture_.texts.push_back({{place(text_width(note, kTextFont)), y_ + 4}, note, kTextFont});
  }

  [[nodiscard]] Area area_of(BoxId box) const { return layout_.areas().at(box); }

  const Diagram& diagram_;
  HostLayout layout_;
  Picture picture_;
  double y_ = kMargin;  // below what is drawn
};

}  // namespace

Picture draw_host(const Diagram& diagram) { return Drawing(diagram).draw(); }

}  // namespace gxp

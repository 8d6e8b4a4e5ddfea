#include "lib/tools/topology/view/topology_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/text/plural.h"
#include "lib/tools/topology/view/fabric.h"
#include "lib/tools/topology/view/part_words.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

constexpr double kHostsPad = 9;
constexpr double kLine = 14;
constexpr double kHostsGap = 26;  // between neighbours
constexpr double kLevelGap = 44;  // between a switch and what is below it
constexpr double kShadow = 5;     // of a box for several hosts or switches
constexpr double kLeast = 130;    // widths
constexpr double kMost = 260;
constexpr size_t kMostBelow = 8;  // drawn; of more that all differ the others are counted
constexpr size_t kMostTrees = 3;

// Boxes of switches over boxes of hosts.
class FabricDrawing {
 public:
  FabricDrawing(const Topology& topology, Picture& picture)
      : topology_(topology), picture_(picture) {}

  double draw(std::vector<FabricNode> roots, double y) {
    shorten(roots);
    const double width = width_of(roots);
    double height = 0;
    for (const FabricNode& root : roots) height = std::max(height, height_of(root));
    picture_.width = std::max(picture_.width, width + 2 * kMargin);
    double x = (picture_.width - width) / 2;
    for (const FabricNode& root : roots) {
      const double taken = width_of(root);
      draw_node(root, {x, y}, nullptr);
      x += taken + kHostsGap;
    }
    return y + height;
  }

 private:
  static void shorten(std::vector<FabricNode>& nodes) {
    if (nodes.size() > kMostBelow) {
      FabricNode others{.below_each = 0, .rails = 0};
      for (size_t i = kMostBelow - 1; i < nodes.size(); ++i)
        others.below_each += nodes[i].names.size();
      others.names = {fmt::format("{} others", others.below_each)};
      others.is_hosts = nodes.back().is_hosts;
      nodes.resize(kMostBelow - 1);
      nodes.push_back(std::move(others));
    }
    for (FabricNode& node : nodes) shorten(node.below);
  }

  static std::string name_of(const FabricNode& node) { return words_of_range(node.names); }

  [[nodiscard]] std::vector<std::string> lines_of(const FabricNode& node) const {
    if (node.rails == 0) return {"each with something else below it"};
    std::vector<std::string> lines;
    const std::string each = node.names.size() > node.below_each ? " below each switch" : "";
    if (node.is_hosts) {
      lines.push_back(counted(node.below_each, "host") + each);
      if (node.tree != kNoTree) {
        const HostTree& tree = *topology_.trees[node.tree];
        lines.push_back(fmt::format("of {}, {}", counted(tree.all_of(PartKind::kGpu).size(), "GPU"),
                                    counted(tree.all_of(PartKind::kNic).size(), "NIC")));
      }
    } else if (node.names.size() > 1) {
      lines.push_back(
          node.rails > 1 ? fmt::format("{} switches, {} rails{}", node.below_each, node.rails, each)
                         : counted(node.below_each, "switch") + each);
    }
    if (node.uplink_gb_per_s > 0)
      lines.push_back(fmt::format("{} GB/s up{}", format_gb_per_s(node.uplink_gb_per_s),
                                  node.names.size() > 1 ? " each" : ""));
    return lines;
  }

  [[nodiscard]] double box_width(const FabricNode& node) const {
    double widest = text_width(name_of(node), kNameFont);
    for (const std::string& line : lines_of(node))
      widest = std::max(widest, text_width(line, kTextFont));
    return std::clamp(widest + 2 * kHostsPad, kLeast, kMost);
  }

  [[nodiscard]] double box_height(const FabricNode& node) const {
    return 2 * kHostsPad + kLine * double(lines_of(node).size() + 1);
  }

  [[nodiscard]] double width_of(const std::vector<FabricNode>& side_by_side) const {
    return row_width(side_by_side, kHostsGap, [&](const FabricNode& one) { return width_of(one); });
  }

  [[nodiscard]] double width_of(const FabricNode& node) const {
    return std::max(box_width(node) + kShadow * 2, width_of(node.below));
  }

  [[nodiscard]] double height_of(const FabricNode& node) const {
    double below = 0;
    for (const FabricNode& one : node.below) below = std::max(below, kLevelGap + height_of(one));
    return box_height(node) + 2 * kShadow + below;
  }

  // A switch over several is a bar over all of them, so that wires go straight down.
  void draw_node(const FabricNode& node, Point corner, const Area* above) {
    const double room = width_of(node);
    const double below = width_of(node.below);
    double x = corner.x + (room - below) / 2;
    Area box{corner.x + (room - box_width(node)) / 2, corner.y, box_width(node), box_height(node)};
    if (node.below.size() > 1 && below > box.width) {
      const FabricNode& first = node.below.front();
      const FabricNode& last = node.below.back();
      box.x = x + (width_of(first) - box_width(first)) / 2;
      box.width = x + below - (width_of(last) - box_width(last)) / 2 - box.x;
    }
    draw_box(node, box);
    if (above != nullptr) draw_wire(node, *above, box);
    Area whole = box;
    if (node.names.size() > 1) whole.height += 2 * kShadow;
    for (const FabricNode& one : node.below) {
      draw_node(one, {x, box.bottom() + kLevelGap}, &whole);
      x += width_of(one) + kHostsGap;
    }
  }

  void draw_box(const FabricNode& node, const Area& box) {
    const BoxStyle style = node.is_hosts ? BoxStyle::kHost : BoxStyle::kNetworkSwitch;
    for (int behind = node.names.size() > 1 ? 2 : 0; behind > 0; --behind) {
      picture_.boxes.push_back(
          {{box.x + kShadow * behind, box.y + kShadow * behind, box.width, box.height}, style, ""});
    }
    picture_.boxes.push_back({box, style, name_of(node)});
    double y = box.y + kHostsPad + kLine - 3;
    picture_.texts.push_back({{box.middle_x(), y},
                              fit_text(name_of(node), box.width - 2 * kHostsPad, kNameFont),
                              kNameFont,
                              Anchor::kMiddle});
    for (const std::string& line : lines_of(node)) {
      y += kLine;
      picture_.texts.push_back({{box.middle_x(), y},
                                fit_text(line, box.width - 2 * kHostsPad, kTextFont),
                                kTextFont,
                                Anchor::kMiddle});
    }
  }

  void draw_wire(const FabricNode& node, const Area& above, const Area& box) {
    const bool is_known = node.uplink_gb_per_s > 0;
    picture_.lines.push_back({.points = {{box.middle_x(), above.bottom()}, {box.middle_x(), box.y}},
                              .width = line_width(node.uplink_gb_per_s),
                              .style = is_known ? LineStyle::kNetwork : LineStyle::kUnknown});
  }

  const Topology& topology_;
  Picture& picture_;
};

void write_title(const Topology& topology, Picture& picture) {
  picture.title = title_of(topology.name);
  picture.texts.push_back({{kMargin, kMargin + 14}, picture.title, kTitleFont});
  picture.texts.push_back(
      {{kMargin, kMargin + 32},
       fmt::format("{}, {}, {}", counted(topology.hosts.size(), "host"),
                   counted(topology.switches.size(), "switch"), topology.source),
       kTextFont});
  for (const DrawnText& text : picture.texts)
    picture.width = std::max(picture.width, text.area().right() + kMargin);
}

}  // namespace

Picture draw_topology(const Topology& topology) {
  if (topology.hosts.size() == 1 && topology.switches.empty() && topology.trees.size() == 1)
    return draw_host(make_diagram(*topology.trees[0]));
  std::vector<Picture> insides;
  Picture picture;
  write_title(topology, picture);
  for (size_t tree = 0; tree < std::min(topology.trees.size(), kMostTrees); ++tree) {
    Diagram diagram = make_diagram(*topology.trees[tree]);
    diagram.title = "in " + words_of_range(names_of_hosts(topology, tree));
    insides.push_back(draw_host(diagram));
    picture.width = std::max(picture.width, insides.back().width);
  }
  double y = FabricDrawing(topology, picture).draw(make_fabric(topology), kMargin + kTitleHeight);
  for (const Picture& inside : insides) {
    picture.add(inside, {(picture.width - inside.width) / 2, y});
    y += inside.height;
  }
  picture.height = y + (insides.empty() ? kMargin : 0);
  return picture;
}

}  // namespace gxp

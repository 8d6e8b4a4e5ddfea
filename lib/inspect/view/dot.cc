#include "lib/inspect/view/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/inspect/view/diagram.h"
#include "lib/inspect/view/fabric.h"
#include "lib/inspect/view/part_words.h"
#include "lib/inspect/view/picture.h"

namespace gxp {
namespace {

// In the order of BoxKind.
constexpr std::array<std::string_view, 5> kShapes = {
    "shape=box, style=\"filled\", fillcolor=\"#d5dce6\"",
    "shape=box, style=\"filled\", fillcolor=\"#e6e9ee\"",
    "shape=box, style=\"filled,bold\", fillcolor=\"#e3f1d3\"",
    "shape=box, style=\"filled,rounded\", fillcolor=\"#dcebfa\"",
    "shape=box, style=\"dashed\"",
};

// Quotes, and what Graphviz would take for its own in a quoted text.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return result + '"';
}

std::string label_of(const std::string& name, const std::vector<std::string>& lines) {
  std::string label = name;
  for (const std::string& line : lines) label += "\n" + line;
  return quoted(label);
}

class HostWriter {
 public:
  // `prefix` begins all names of nodes.
  HostWriter(const Diagram& diagram, std::string prefix, std::string& dot)
      : diagram_(diagram), prefix_(std::move(prefix)), dot_(dot) {}

  void write(const std::string& title) {
    dot_ += fmt::format("  subgraph \"cluster_{}\" {{\n    label={}\n", prefix_, quoted(title));
    for (const BoxId root : diagram_.roots) write_box(root);
    dot_ += "  }\n";
    if (!diagram_.inter_numa.empty()) write_inter_numa();
    for (size_t i = 0; i < diagram_.link_switches.size(); ++i) write_link_switch(i);
    for (const Bundle& bundle : diagram_.bundles) write_bundle(bundle);
  }

 private:
  [[nodiscard]] std::string id(BoxId box) const { return fmt::format("{}b{}", prefix_, box); }

  void write_box(BoxId box) {
    const Box& one = diagram_.boxes[box];
    const bool holds = !one.inside.empty();
    if (holds) dot_ += fmt::format("  subgraph \"cluster_{}\" {{\n  label=\"\"\n", id(box));
    dot_ += fmt::format("  {} [label={}, {}]\n", id(box), label_of(one.name, one.lines),
                        kShapes[size_t(one.kind)]);
    for (const BoxId inner : one.inside) write_box(inner);
    for (const BoxId inner : one.inside) write_wire(box, inner);
    if (holds) dot_ += "  }\n";
  }

  void write_wire(BoxId above, BoxId below) {
    const Wire& wire = diagram_.boxes[below].wire;
    dot_ += fmt::format(
        "  {} -- {} [penwidth={:.1f}, {}]\n", id(above), id(below), line_width(wire.gb_per_s),
        wire.gb_per_s > 0
            ? fmt::format("tooltip={}",
                          quoted(wire.label + ", " + format_gb_per_s(wire.gb_per_s) + " GB/s"))
            : "style=dashed");
  }

  void write_inter_numa() {
    dot_ += fmt::format("  {}numa [label={}, shape=box, style=dotted]\n", prefix_,
                        quoted(diagram_.inter_numa));
    for (const BoxId root : diagram_.roots)
      dot_ += fmt::format("  {}numa -- {} [style=dotted]\n", prefix_, id(root));
  }

  void write_link_switch(size_t index) {
    const LinkSwitch& all = diagram_.link_switches[index];
    const std::string name = fmt::format("{}s{}", prefix_, index);
    dot_ +=
        fmt::format("  {} [label={}, shape=box, style=\"filled,bold\", fillcolor=\"#cfe5b4\"]\n",
                    name, quoted(all.name));
    for (const LinkSwitch::Port& port : all.ports) {
      dot_ += fmt::format("  {} -- {} [penwidth={:.1f}, color=\"#3f6b12:white:#3f6b12\"]\n",
                          id(port.gpu), name, line_width(port.gb_per_s) / 2);
    }
  }

  void write_bundle(const Bundle& bundle) {
    std::string label = count_of(size_t(bundle.count), to_string(bundle.kind));
    if (bundle.gb_per_s > 0) label += "\n" + format_gb_per_s(bundle.gb_per_s) + " GB/s";
    dot_ +=
        fmt::format("  {} -- {} [label={}, penwidth={:.1f}, color=\"#3f6b12\", constraint=false]\n",
                    id(bundle.from), id(bundle.to), quoted(label), line_width(bundle.gb_per_s));
  }

  const Diagram& diagram_;
  std::string prefix_;
  std::string& dot_;
};

class FabricWriter {
 public:
  FabricWriter(std::string& dot) : dot_(dot) {}

  void write(const FabricNode& node, const std::string& above) {
    const std::string name = fmt::format("f{}", next_++);
    const std::string times =
        node.names.size() > 1
            ? fmt::format("{} {}", node.names.size(), node.is_hosts ? "hosts" : "switches")
            : "";
    dot_ += fmt::format("  {} [label={}, shape=box, peripheries={}]\n", name,
                        label_of(words_of_range(node.names),
                                 times.empty() ? std::vector<std::string>{} : std::vector{times}),
                        node.names.size() > 1 ? 2 : 1);
    if (!above.empty()) {
      dot_ += fmt::format(
          "  {} -- {} [penwidth={:.1f}, label={}]\n", above, name, line_width(node.uplink_gb_per_s),
          quoted(node.uplink_gb_per_s > 0 ? format_gb_per_s(node.uplink_gb_per_s) + " GB/s" : ""));
    }
    for (const FabricNode& below : node.below) write(below, name);
  }

 private:
  std::string& dot_;
  int next_ = 0;
};

}  // namespace

std::string to_dot(const Topology& topology) {
  std::string dot = fmt::format("graph {} {{\n  node [fontname=\"sans-serif\", fontsize=10]\n",
                                quoted(topology.name));
  const bool is_host = topology.hosts.size() == 1 && topology.switches.empty();
  if (!is_host) {
    FabricWriter fabric(dot);
    for (const FabricNode& root : make_fabric(topology)) fabric.write(root, "");
  }
  for (size_t tree = 0; tree < topology.trees.size(); ++tree) {
    const Diagram diagram = make_diagram(topology.trees[tree]);
    HostWriter(diagram, fmt::format("h{}", tree), dot).write(diagram.title);
  }
  return dot + "}\n";
}

}  // namespace gxp

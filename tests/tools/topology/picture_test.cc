// Pictures: what a person sees is held against golden files, which have been looked at; and of all
// topologies at hand, no text may leave its box or be crossed by a line.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>
#include <sstream>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/view/diagram.h"
#include "lib/tools/topology/view/fabric.h"
#include "lib/tools/topology/view/topology_picture.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"
#include "tests/unpacked.h"

namespace gxp {
namespace {

struct Sample {
  std::string name;  // of the golden file
  Topology topology;
};

// Eight leaf switches of sixteen hosts under one spine.
Topology two_level_cluster() {
  Topology cluster{.name = "128 hosts, two levels", .source = "made for a test"};
  cluster.trees = load_topology("dgx-h100").trees;
  cluster.switches.push_back({.name = "spine"});
  for (size_t leaf = 0; leaf < 8; ++leaf) {
    cluster.switches.push_back(
        {.name = fmt::format("leaf{}", leaf), .above = 0, .uplink_gb_per_s = 3200});
    for (size_t host = 0; host < 16; ++host) {
      cluster.hosts.push_back(
          {.name = fmt::format("dgx{:03}", leaf * 16 + host), .tree = 0, .leaves = {leaf + 1}});
    }
  }
  return cluster;
}

std::string data(std::string_view file) { return fmt::format("{}/topo/{}", GXP_TEST_DATA, file); }

std::vector<Sample> samples() {
  return {{"dgx_h100", load_topology("dgx-h100")},
          {"azure_ndv4", load_topology("azure-ndv4")},
          {"aws_p5", load_topology("aws-p5")},
          {"pcie_box", load_topology("2xnuma:4")},
          {"dgx1_v100", load_topology(data("smi/dgx1-v100-4mlx.txt"))},
          {"two_level_cluster", two_level_cluster()}};
}

constexpr double kSlack = 0.5;

bool overlap(const Area& a, const Area& b) {
  return a.x + kSlack < b.right() && b.x + kSlack < a.right() && a.y + kSlack < b.bottom() &&
         b.y + kSlack < a.bottom();
}

bool contains(const Area& outer, const Area& inner) {
  return inner.x >= outer.x - kSlack && inner.right() <= outer.right() + kSlack &&
         inner.y >= outer.y - kSlack && inner.bottom() <= outer.bottom() + kSlack;
}

Area area_of(Point a, Point b, double width) {
  return {std::min(a.x, b.x) - width / 2, std::min(a.y, b.y) - width / 2,
          std::abs(a.x - b.x) + width, std::abs(a.y - b.y) + width};
}

// The last box that is drawn over the middle of the text.
const DrawnBox* box_of(const Picture& picture, const Area& text) {
  const auto found =
      std::find_if(picture.boxes.rbegin(), picture.boxes.rend(), [&](const DrawnBox& box) {
        return contains(box.area, {text.middle_x(), text.middle_y(), 0, 0});
      });
  return found == picture.boxes.rend() ? nullptr : &*found;
}

// "" or the first text that one cannot read.
std::string unreadable_text(const Picture& picture) {
  for (size_t i = 0; i < picture.texts.size(); ++i) {
    const Area text = picture.texts[i].area();
    if (!contains({0, 0, picture.width, picture.height}, text))
      return "beyond the edge: " + picture.texts[i].text;
    const DrawnBox* box = box_of(picture, text);
    if (box != nullptr && !contains(box->area, text))
      return "leaves its box: " + picture.texts[i].text;
    for (size_t k = 0; k < i; ++k) {
      if (overlap(text, picture.texts[k].area()))
        return fmt::format("{} lies over {}", picture.texts[i].text, picture.texts[k].text);
    }
    for (const DrawnLine& line : picture.lines) {
      for (size_t k = 1; k < line.points.size(); ++k) {
        const double width = line.strands > 1 ? kStrandPitch * line.strands : line.width;
        if (overlap(text, area_of(line.points[k - 1], line.points[k], width)))
          return "a line crosses " + picture.texts[i].text;
      }
    }
  }
  return "";
}

// Boxes lie in one another or apart.
std::string colliding_boxes(const Picture& picture) {
  for (size_t i = 0; i < picture.boxes.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const Area& a = picture.boxes[i].area;
      const Area& b = picture.boxes[k].area;
      const bool is_stack = picture.boxes[i].style == picture.boxes[k].style && a.width == b.width;
      if (overlap(a, b) && !contains(a, b) && !contains(b, a) && !is_stack)
        return picture.boxes[i].tip + " / " + picture.boxes[k].tip;
    }
  }
  return "";
}

// Topologies of all kinds; graphs of NCCL's have no hosts.
std::vector<Sample> all_topologies() {
  std::vector<Sample> all = samples();
  for (const char* name : {"dgx-a100", "dgx-b200", "ring:16", "mesh:8", "nvswitch:4", "pcie:4"})
    all.push_back({name, load_topology(name)});
  for (const char* folder : {"", "smi", "hwloc"}) {
    for (const auto& entry : std::filesystem::directory_iterator(data(folder))) {
      const std::string path = entry.path().string();
      if (!entry.is_regular_file() || path.ends_with(".md")) continue;
      Topology topology = load_topology(path.ends_with(".gz") ? Unpacked(path).path() : path);
      if (!topology.hosts.empty()) all.push_back({path, std::move(topology)});
    }
  }
  return all;
}

TEST_CASE("no text leaves its box, lies over another, or is crossed by a line", "[inspect]") {
  for (const auto& [name, topology] : all_topologies()) {
    CAPTURE(name);
    const Picture picture = draw_topology(topology);
    CHECK(unreadable_text(picture) == "");
    CHECK(colliding_boxes(picture) == "");
  }
}

TEST_CASE("a picture is valid XML, small, and the same each time", "[inspect]") {
  for (const auto& [name, topology] : all_topologies()) {
    CAPTURE(name);
    const std::string svg = to_svg(draw_topology(topology));
    pugi::xml_document document;
    CHECK(document.load_string(svg.c_str()));
    CHECK(svg.size() < 200'000);
    CHECK(svg == to_svg(draw_topology(topology)));
  }
}

TEST_CASE("pictures are those that were looked at", "[inspect]") {
  for (const auto& [name, topology] : samples()) {
    CAPTURE(name);
    const std::string path = fmt::format("{}/docs/topo_{}.svg", GXP_SOURCE_DIR, name);
    const std::string svg = to_svg(draw_topology(topology));
    const std::string written = std::filesystem::temp_directory_path() / ("topo_" + name + ".svg");
    if (std::filesystem::exists(path) && read_text_file(path, 1 << 20) == svg) continue;
    std::ofstream(written) << svg;
    FAIL_CHECK("the picture has changed; look at " << written << " and copy it to " << path);
  }
}

TEST_CASE("names from a file cannot break a picture", "[inspect]") {
  HostTree host;
  host.name = "<&\"'\x01\xff</svg>";
  const PartId node = host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{.number = 0}});
  host.add({.kind = PartKind::kGpu,
            .above = node,
            .bus_id = "0000:01:00.0",
            .info = GpuInfo{.model_name = std::string(3000, 'W')},
            .name = "a\"b\\c\n]>"});
  const Picture picture = draw_topology(topology_of(host));
  pugi::xml_document document;
  CHECK(document.load_string(to_svg(picture).c_str()));
  CHECK(unreadable_text(picture) == "");
}

TEST_CASE("a chain of bridges is one wire, as slow as its slowest part", "[inspect]") {
  HostTree host;
  PartId above = host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{.number = 0}});
  for (const int lanes : {16, 4, 16}) {
    above = host.add({.kind = PartKind::kPcieSwitch, .above = above, .link = {.now = {16, lanes}}});
  }
  host.add({.kind = PartKind::kGpu, .above = above, .link = {.now = {32, 16}}, .info = GpuInfo{}});
  const Diagram diagram = make_diagram(host);
  REQUIRE(diagram.boxes.size() == 2);
  CHECK(diagram.boxes[1].wire.label == "PCIe 4 x4");
}

TEST_CASE("what all GPUs are joined to is one thing, what some are is each for itself",
          "[inspect]") {
  const Diagram switched = make_diagram(load_host("dgx-h100"));
  REQUIRE(switched.link_switches.size() == 1);
  CHECK(switched.link_switches[0].name == "4 NVSwitches: 18 NVLinks, 450 GB/s for each GPU");
  CHECK(switched.link_switches[0].ports.size() == 8);
  CHECK(make_diagram(load_host(data("smi/dgx1-v100-4mlx.txt"))).bundles.size() == 16);
  const Diagram mesh = make_diagram(load_host(data("rccl-topo_8p_940.xml")));
  REQUIRE(mesh.link_switches.size() == 1);
  CHECK(mesh.link_switches[0].name == "each GPU to each other: 1 xGMI, 64 GB/s");
}

TEST_CASE("switches and hosts that are alike are drawn once where there are many", "[inspect]") {
  Topology cluster;
  cluster.switches.push_back({.name = "spine"});
  const size_t leaves = GENERATE(8, 9);
  for (size_t leaf = 0; leaf < leaves; ++leaf) {
    cluster.switches.push_back({.name = fmt::format("leaf{}", leaf), .above = 0});
    for (size_t i = 0; i < 4; ++i)
      cluster.hosts.push_back({.name = fmt::format("h{}", 4 * leaf + i), .leaves = {leaf + 1}});
  }
  const std::vector<FabricNode> fabric = make_fabric(cluster);
  REQUIRE(fabric.size() == 1);
  CHECK(fabric[0].below.size() == (leaves == 8 ? 8 : 1));
  CHECK(fabric[0].below[0].below[0].below_each == 4);
  CHECK(fabric[0].below[0].below[0].names.size() == (leaves == 8 ? 4 : 36));
}

}  // namespace
}  // namespace gxp

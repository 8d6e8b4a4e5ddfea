// What a picture of a host shows, before anything has a place: boxes within boxes, the links beside
// the tree as bundles, and what is so common that it is said once. Pictures are
// made from it.
//
// What it leaves out: host bridges; bridges with a single thing below them, which join that thing's
// wire; bridges with nothing below; NVSwitches' own places on PCIe. More than four plain
// PCIe devices of one parent are one box.
//   Units  GB/s of one direction, what the wires carry: PCIe and NVLink less their line codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/topo/model/host_tree.h"

namespace gxp {

enum class BoxKind : uint8_t { kNumaNode, kSwitch, kGpu, kNic, kDevice };

using BoxId = size_t;  // index into Diagram::boxes
inline constexpr BoxId kNoBox = ~BoxId{0};

// From a box to the one around it.
struct Wire {
  double gb_per_s = 0;  // 0: unknown
  std::string label{};  // "PCIe 5 x16"; "": it is no PCIe link, or nothing is known
};

struct Box {
  BoxKind kind = BoxKind::kDevice;
  PartId part = kNoPart;             // none: it stands for several, or for what is above all
  std::string name{};                // "GPU0"
  std::vector<std::string> lines{};  // what matters, one line each
  std::string tip{};                 // the whole of it
  Wire wire{};
  std::vector<BoxId> inside{};  // of NUMA nodes and switches
};

// Links side by side between two GPUs.
struct Bundle {
  BoxId from = kNoBox;  // stands before `to` in the picture
  BoxId to = kNoBox;
  CrossLinkKind kind = CrossLinkKind::kNvLink;
  int count = 0;
  double gb_per_s = 0;  // of all; 0: unknown
};

// What all of some GPUs are joined to: NVSwitches, or one another by as many links for each pair.
struct LinkSwitch {
  struct Port {
    BoxId gpu = kNoBox;
    int count = 0;
    double gb_per_s = 0;
  };
  CrossLinkKind kind = CrossLinkKind::kNvLink;
  std::string name{};  // "4 NVSwitches: 18 NVLinks, 450 GB/s each GPU"
  std::vector<Port> ports{};
};

struct Diagram {
  std::string title{};
  std::string subtitle{};
  std::vector<Box> boxes{};
  std::vector<BoxId> roots{};  // in the tree's order
  std::vector<Bundle> bundles{};
  std::vector<LinkSwitch> link_switches{};
  Wire usual_wire{};         // boxes whose wire is another say so
  std::string inter_numa{};  // between NUMA nodes, if there are several
};

Diagram make_diagram(const HostTree& host);
// Its step for the links beside the tree: adds bundles, link switches, and lines on the GPUs for
// links that are neither. `box_of` is by part.
void add_gpu_links(const HostTree& host, const std::vector<BoxId>& box_of, Diagram& diagram);

// The name of a file without its folders; other names as they are.
std::string title_of(const std::string& name);

// "450", "31.5", "0.985".
std::string format_gb_per_s(double gb_per_s);

}  // namespace gxp

// The content of a picture of a host, before it has a layout: boxes within boxes, the cross links
// as bundles, and common facts, which are said once.
//
// A diagram leaves out host bridges; bridges with a single part below, which join that part's wire;
// bridges with nothing below; NVSwitches' own places on PCIe. More than four plain PCIe devices of
// one parent are one box.
//   Units  GB/s of one direction, what the wires carry: PCIe and NVLink less their line codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/topo/model/part_id.h"

namespace gxp {

class HostTree;

enum class BoxKind : uint8_t { kNumaNode, kSwitch, kGpu, kNic, kDevice };

using BoxId = size_t;  // index into Diagram::boxes
inline constexpr BoxId kNoBox = ~BoxId{0};

// The link from a box to the one around it.
struct Wire {
  double gb_per_s = 0;  // 0: unknown
  std::string label{};  // "PCIe 5 x16"; "": it is no PCIe link, or nothing is known
};

struct Box {
  BoxKind kind = BoxKind::kDevice;
  PartId part = kNoPart;             // none: several parts, or what is above all
  std::string name{};                // "GPU0"
  std::vector<std::string> lines{};  // the facts that matter
  std::string tip{};                 // all facts
  Wire wire{};
  std::vector<BoxId> inside{};  // of NUMA nodes and switches
};

// Links side by side between two GPUs.
struct Bundle {
  BoxId from = kNoBox;  // comes before `to` in the picture
  BoxId to = kNoBox;
  CrossLinkKind kind = CrossLinkKind::kNvLink;
  int count = 0;
  double gb_per_s = 0;  // of all; 0: unknown
};

// A connection of several GPUs: NVSwitches, or equally many links for each pair.
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
  Wire usual_wire{};         // boxes with another wire name theirs
  std::string inter_numa{};  // between NUMA nodes, if there are several
};

Diagram make_diagram(const HostTree& host);
// A step of make_diagram(): adds bundles and link switches, and for other cross links lines in the
// GPUs' boxes. `box_of` is by part.
void add_gpu_links(const HostTree& host, const std::vector<BoxId>& box_of, Diagram& diagram);

// The name of a file without its folders; other names as they are.
std::string title_of(const std::string& name);

// "450", "31.5", "0.985".
std::string format_gb_per_s(double gb_per_s);

}  // namespace gxp

#include "lib/tools/topology/view/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "lib/base/text/plural.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

constexpr size_t kMostApart = 4;  // GPUs that are all joined; those of more are drawn as one thing
constexpr size_t kMostBundles = 256;

// The ports of one GPU to something.
struct Sum {
  CrossLinkKind kind = CrossLinkKind::kNvLink;
  int count = 0;
  double gb_per_s = 0;

  void add(const CrossLink& link, double link_gb_per_s) {
    kind = link.kind;
    count += link.count;
    gb_per_s += link.count * link_gb_per_s;
  }
};

std::string links(CrossLinkKind kind, int count) { return counted(size_t(count), to_string(kind)); }

std::string describe(const Sum& sum) {
  if (sum.gb_per_s <= 0) return links(sum.kind, sum.count);
  return fmt::format("{}, {} GB/s", links(sum.kind, sum.count), format_gb_per_s(sum.gb_per_s));
}

double physical_gb_per_s(const HostTree& host, const CrossLink& link) {
  if (link.gb_per_s > 0) return link.gb_per_s;
  const auto& gpu = info_of<GpuInfo>(host[link.from]);
  if (link.kind == CrossLinkKind::kXgmi) return physical_xgmi_gb_per_s(gpu.gcn);
  if (link.kind != CrossLinkKind::kNvLink || host[link.from].kind != PartKind::kGpu) return 0;
  return physical_nvlink_gb_per_s(gpu.compute_capability.value_or(0));
}

class Links {
 public:
  Links(const HostTree& host, const std::vector<BoxId>& box_of, Diagram& diagram)
      : host_(host), box_of_(box_of), diagram_(diagram) {}

  void add_all() {
    for (const CrossLink& link : host_.cross_links()) sort_in(link);
    add_nvswitches();
    if (!add_mesh()) add_bundles();
    for (const auto& [box, sum] : to_nodes_)
      diagram_.boxes[box].lines.push_back(describe(sum) + " to its CPU");
    for (const auto& [box, sum] : to_nothing_)
      diagram_.boxes[box].lines.push_back(links(sum.kind, sum.count) + " to nothing");
  }

 private:
  void sort_in(const CrossLink& link) {
    if (link.from == kNoPart || box_of_[link.from] == kNoBox) return;
    const BoxId from = box_of_[link.from];
    const double gb_per_s = physical_gb_per_s(host_, link);
    const bool has_end = link.to != kNoPart;
    if (leads_to_nvswitch(host_, link)) {
      to_switches_[from].add(link, gb_per_s);
      if (!link.target.empty() && !link.target.starts_with("fffffff"))
        switches_.insert(link.target);
    } else if ((has_end && host_[link.to].kind == PartKind::kNumaNode) ||
               link.target_class.starts_with(kCpuBridgeClass) ||
               link.kind == CrossLinkKind::kChipToChip) {
      to_nodes_[from].add(link, gb_per_s);
    } else if (has_end && box_of_[link.to] != kNoBox && box_of_[link.to] != from) {
      one_way_[{from, box_of_[link.to]}].add(link, gb_per_s);
    } else {
      to_nothing_[from].add(link, gb_per_s);
    }
  }

  void add_nvswitches() {
    const size_t parts = host_.all_of(PartKind::kNvSwitch).size();
    const size_t switches = std::max(parts, switches_.size());
    if (to_switches_.empty() && parts == 0) return;
    LinkSwitch all{.kind = CrossLinkKind::kNvLink};
    std::map<int, int> counts;  // how many GPUs have as many links
    for (const auto& [box, sum] : to_switches_) {
      all.ports.push_back({.gpu = box, .count = sum.count, .gb_per_s = sum.gb_per_s});
      ++counts[sum.count];
    }
    all.name = switches == 0   ? "NVSwitches, hidden by the virtual machine"
               : switches == 1 ? "NVSwitch"
                               : fmt::format("{} NVSwitches", switches);
    if (counts.empty()) {
      all.name += ", no NVLink is listed";
    } else {
      const int usual = std::ranges::max_element(counts, {}, [](const auto& row) {
                          return std::pair(row.second, row.first);
                        })->first;
      for (const auto& [box, sum] : to_switches_) {
        if (sum.count != usual) diagram_.boxes[box].lines.push_back(describe(sum));
      }
      const auto one =
          std::ranges::find(to_switches_, usual, [](const auto& row) { return row.second.count; });
      all.name += ": " + describe(one->second) + " for each GPU";
    }
    diagram_.link_switches.push_back(std::move(all));
  }

  // Whether all GPUs are joined in pairs by as many links; drawn as one thing then.
  bool add_mesh() {
    std::set<BoxId> gpus;
    for (const auto& [pair, sum] : one_way_) gpus.insert({pair.first, pair.second});
    const size_t pairs = gpus.size() * (gpus.size() - 1);
    if (gpus.size() <= kMostApart || one_way_.size() != pairs) return false;
    const Sum first = one_way_.begin()->second;
    const bool alike = std::ranges::all_of(
        one_way_, [&](const auto& row) { return row.second.count == first.count; });
    if (!alike) return false;
    LinkSwitch mesh{.kind = first.kind,
                    .name = fmt::format("each GPU to each other: {}", describe(first))};
    const auto peers = int(gpus.size()) - 1;
    for (const BoxId gpu : gpus) {
      mesh.ports.push_back(
          {.gpu = gpu, .count = first.count * peers, .gb_per_s = first.gb_per_s * peers});
    }
    diagram_.link_switches.push_back(std::move(mesh));
    return true;
  }

  void add_many(const std::map<std::pair<BoxId, BoxId>, Sum>& bundles) {
    std::map<BoxId, LinkSwitch::Port> ports;
    for (const auto& [pair, sum] : bundles) {
      for (const BoxId gpu : {pair.first, pair.second}) {
        LinkSwitch::Port& port = ports[gpu];
        port.gpu = gpu;
        port.count += sum.count;
        port.gb_per_s += sum.gb_per_s;
      }
    }
    LinkSwitch all{.kind = bundles.begin()->second.kind,
                   .name = fmt::format("{} pairs are joined, too many to draw", bundles.size())};
    for (const auto& [gpu, port] : ports) all.ports.push_back(port);
    diagram_.link_switches.push_back(std::move(all));
  }

  // A link that only one end lists is drawn as well.
  void add_bundles() {
    std::map<std::pair<BoxId, BoxId>, Sum> both;
    for (const auto& [pair, sum] : one_way_) {
      Sum& bundle = both[std::minmax(pair.first, pair.second)];
      if (sum.count > bundle.count) bundle = sum;
    }
    if (both.size() > kMostBundles) return add_many(both);
    for (const auto& [pair, sum] : both) {
      diagram_.bundles.push_back({.from = pair.first,
                                  .to = pair.second,
                                  .kind = sum.kind,
                                  .count = sum.count,
                                  .gb_per_s = sum.gb_per_s});
    }
  }

  const HostTree& host_;
  const std::vector<BoxId>& box_of_;
  Diagram& diagram_;
  std::map<BoxId, Sum> to_switches_;
  std::set<std::string> switches_;  // their bus ids
  std::map<std::pair<BoxId, BoxId>, Sum> one_way_;
  std::map<BoxId, Sum> to_nodes_;
  std::map<BoxId, Sum> to_nothing_;
};

}  // namespace

void add_gpu_links(const HostTree& host, const std::vector<BoxId>& box_of, Diagram& diagram) {
  Links(host, box_of, diagram).add_all();
}

}  // namespace gxp

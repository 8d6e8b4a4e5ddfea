#include "lib/tools/topology/compare/host_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_paths.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 7> kChangeNames = {"missing", "added",   "moved", "slower",
                                                          "faster",  "changed", "path"};
constexpr size_t kPairsShown = 4;

template <class Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "";
}

class Comparison {
 public:
  Comparison(const HostTree& a, const HostTree& b)
      : a_(a),
        b_(b),
        names_a_(names_of_parts(a)),
        names_b_(names_of_parts(b)),
        match_(match_parts(a, b)),
        back_(b.parts().size(), kNoPart),
        names_nvswitches_(names_nvswitches(a) && names_nvswitches(b)) {
    for (PartId id = 0; id < match_.size(); ++id) {
      if (match_[id] != kNoPart) back_[match_[id]] = id;
    }
  }

  std::vector<HostChange> run() {
    for (PartId id = 0; id < match_.size(); ++id) compare_part(id);
    for (PartId id = 0; id < back_.size(); ++id) {
      if (is_alone(b_, back_, id) && is_told(b_[id]))
        add(ChangeKind::kAdded, names_b_[id], "", "", below_text(b_, id));
    }
    compare_cross_links();
    compare_peer_states();
    compare_paths();
    return std::move(changes_);
  }

 private:
  void add(ChangeKind kind, std::string part, std::string what, std::string first,
           std::string second) {
    changes_.push_back(
        {kind, std::move(part), std::move(what), std::move(first), std::move(second)});
  }

  // NCCL's XML has NVLinks to NVSwitches, but no NVSwitches.
  static bool names_nvswitches(const HostTree& host) {
    return std::ranges::none_of(host.cross_links(), [](const CrossLink& link) {
      return link.kind == CrossLinkKind::kNvLink && link.to == kNoPart;
    });
  }
  [[nodiscard]] bool is_told(const Part& part) const {
    return names_nvswitches_ || part.kind != PartKind::kNvSwitch;
  }

  // Not matched, and what it hangs on is.
  static bool is_alone(const HostTree& host, const std::vector<PartId>& match, PartId id) {
    const PartId above = host[id].above;
    return match[id] == kNoPart && (above == kNoPart || match[above] != kNoPart);
  }

  // "with 2 GPUs, 1 NIC below it"
  static std::string below_text(const HostTree& host, PartId id) {
    std::map<PartKind, int> counts;
    std::vector<PartId> ahead = host[id].below;
    while (!ahead.empty()) {
      const PartId part = ahead.back();
      ahead.pop_back();
      ++counts[host[part].kind];
      ahead.insert(ahead.end(), host[part].below.begin(), host[part].below.end());
    }
    std::string text;
    for (const auto& [kind, count] : counts)
      text += fmt::format("{}{} x {}", text.empty() ? "with " : ", ", count, to_string(kind));
    return text;
  }

  void compare_part(PartId id) {
    if (!is_told(a_[id])) return;
    if (is_alone(a_, match_, id)) {
      add(ChangeKind::kMissing, names_a_[id], "", below_text(a_, id), "");
    } else if (match_[id] != kNoPart) {
      compare_place(id, match_[id]);
      compare_link(id, match_[id]);
      compare_facts(id, match_[id]);
    }
  }

  void compare_place(PartId id, PartId other) {
    const PartId above = a_[id].above;
    const PartId other_above = b_[other].above;
    const PartId expected = above == kNoPart ? kNoPart : match_[above];
    if (expected == other_above) return;
    const auto place = [](const std::vector<std::string>& names, PartId part) {
      return part == kNoPart ? std::string("the host") : names[part];
    };
    add(ChangeKind::kMoved, names_a_[id], "below", place(names_a_, above),
        place(names_b_, other_above));
  }

  void compare_number(PartId id, std::string_view what, double first, double second,
                      std::string_view unit) {
    if (first == second || first == 0 || second == 0) return;
    add(second < first ? ChangeKind::kSlower : ChangeKind::kFaster, names_a_[id], std::string(what),
        fmt::format("{:g}{}", first, unit), fmt::format("{:g}{}", second, unit));
  }

  void compare_text(PartId id, std::string_view what, const std::string& first,
                    const std::string& second) {
    if (first != second && !first.empty() && !second.empty())
      add(ChangeKind::kChanged, names_a_[id], std::string(what), first, second);
  }

  void compare_link(PartId id, PartId other) {
    const PcieLink& first = a_[id].link;
    const PcieLink& second = b_[other].link;
    compare_number(id, "PCIe speed", first.now.gt_per_s, second.now.gt_per_s, " GT/s");
    compare_number(id, "PCIe lanes", first.now.lanes, second.now.lanes, "");
    compare_number(id, "PCIe speed, at most", first.most.gt_per_s, second.most.gt_per_s, " GT/s");
    compare_number(id, "PCIe lanes, at most", first.most.lanes, second.most.lanes, "");
  }

  void compare_facts(PartId id, PartId other) {
    const bool is_port = a_[id].kind == PartKind::kPort;  // its speed is compared as a number
    if (!is_port) compare_text(id, "is", likeness(a_, id), likeness(b_, other));
    const auto& port_a = info_of<PortInfo>(a_[id]);
    const auto& port_b = info_of<PortInfo>(b_[other]);
    compare_number(id, "port", port_a.mbit_per_s, port_b.mbit_per_s, " Mbit/s");
    compare_text(id, "name", port_a.name, port_b.name);
    compare_text(id, "state", port_a.state, port_b.state);
    compare_text(id, "link layer", port_a.link_layer, port_b.link_layer);
    compare_text(id, "GPUDirect RDMA", text_of(port_a.gpu_direct), text_of(port_b.gpu_direct));
    const auto& gpu_a = info_of<GpuInfo>(a_[id]);
    const auto& gpu_b = info_of<GpuInfo>(b_[other]);
    compare_text(id, "number", text_of(gpu_a.number), text_of(gpu_b.number));
    compare_text(id, "GPUDirect RDMA", text_of(gpu_a.gpu_direct), text_of(gpu_b.gpu_direct));
    compare_text(id, "model", gpu_a.model_name, gpu_b.model_name);
    const auto& node_a = info_of<NumaNodeInfo>(a_[id]);
    const auto& node_b = info_of<NumaNodeInfo>(b_[other]);
    compare_text(id, "number", text_of(node_a.number), text_of(node_b.number));
    compare_text(id, "CPUs", node_a.affinity, node_b.affinity);
    compare_text(id, "processor", node_a.vendor, node_b.vendor);
    compare_text(id, "processor model", text_of(node_a.model), text_of(node_b.model));
  }

  // Links of a kind from a part to another, those to what is not in the tree (NVSwitches) as one.
  using LinkCounts = std::map<std::pair<CrossLinkKind, PartId>, int>;

  static std::vector<LinkCounts> count_links(const HostTree& host) {
    std::vector<LinkCounts> counts(host.parts().size());
    for (const CrossLink& link : host.cross_links()) {
      const bool to_switch = link.to != kNoPart && host[link.to].kind == PartKind::kNvSwitch;
      counts[link.from][{link.kind, to_switch ? kNoPart : link.to}] += link.count;
    }
    return counts;
  }

  void compare_cross_links() {
    const std::vector<LinkCounts> first = count_links(a_);
    const std::vector<LinkCounts> second = count_links(b_);
    for (PartId id = 0; id < match_.size(); ++id) {
      if (match_[id] == kNoPart) continue;
      LinkCounts there;
      for (const auto& [key, count] : second[match_[id]])
        there[{key.first, key.second == kNoPart ? kNoPart : back_[key.second]}] += count;
      LinkCounts all = first[id];
      all.insert(there.begin(), there.end());
      for (const auto& entry : all) compare_count(id, entry.first, first[id], there);
    }
  }

  void compare_count(PartId id, const std::pair<CrossLinkKind, PartId>& key,
                     const LinkCounts& first, const LinkCounts& second) {
    const auto count = [&](const LinkCounts& counts) {
      const auto found = counts.find(key);
      return found == counts.end() ? 0 : found->second;
    };
    const int before = count(first);
    const int after = count(second);
    if (before == after) return;
    add(after < before ? ChangeKind::kSlower : ChangeKind::kFaster, names_a_[id],
        fmt::format("{}s to {}", to_string(key.first),
                    key.second == kNoPart ? "switches" : names_a_[key.second]),
        std::to_string(before), std::to_string(after));
  }

  // Of pairs of GPUs that both hosts have and both sources tell.
  void compare_peer_states() {
    for (const auto& [pair, first] : a_.peer_states) {
      const auto& [from, to] = pair;
      const auto second = b_.peer_states.find({match_[from], match_[to]});
      if (second != b_.peer_states.end() && second->second != first)
        add(ChangeKind::kChanged, fmt::format("{} to {}", names_a_[from], names_a_[to]),
            "peer-to-peer", first, second->second);
    }
  }

  void compare_paths() {
    const NcclPaths first(a_);
    const NcclPaths second(b_);
    const std::vector<PartId> ends = first.devices();
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> changed;
    for (const PartId from : ends) {
      for (const PartId to : ends) {
        if (from >= to || match_[from] == kNoPart || match_[to] == kNoPart) continue;
        const PathType before = first.distance(from, to).type;
        const PathType after = second.distance(match_[from], match_[to]).type;
        if (before == after) continue;
        changed[{std::string(to_string(before)), std::string(to_string(after))}].push_back(
            fmt::format("{}-{}", names_a_[from], names_a_[to]));
      }
    }
    for (const auto& [types, pairs] : changed) add_path_change(types, pairs);
  }

  void add_path_change(const std::pair<std::string, std::string>& types,
                       const std::vector<std::string>& pairs) {
    const size_t shown = std::min(pairs.size(), kPairsShown);
    std::string text = joined(std::span(pairs).first(shown), ", ");
    if (pairs.size() > shown) text += fmt::format(" and {} more", pairs.size() - shown);
    add(ChangeKind::kPath, text, "path type", types.first, types.second);
  }

  const HostTree& a_;
  const HostTree& b_;
  const std::vector<std::string> names_a_, names_b_;
  const std::vector<PartId> match_;
  std::vector<PartId> back_;
  const bool names_nvswitches_;  // both hosts
  std::vector<HostChange> changes_;
};

}  // namespace

std::string_view to_string(ChangeKind kind) { return kChangeNames[size_t(kind)]; }

std::vector<HostChange> compare_hosts(const HostTree& first, const HostTree& second) {
  const auto require_both = [&](bool HostTree::*is_known, std::string_view lack) {
    if (first.*is_known == second.*is_known) return;
    fail(ErrorKind::kConfig, "compare {} with {}: {} {}", first.name, second.name,
         (first.*is_known ? second : first).source, lack);
  };
  require_both(&HostTree::places_known,
               "does not describe how GPUs are connected; compare two outputs of that command");
  require_both(&HostTree::speeds_known,
               "has no bus ids, bridges and speeds; compare two outputs of that command, or of gxp "
               "topo matrix");
  return Comparison(first, second).run();
}

}  // namespace gxp

#include "lib/tools/topology/view/tree_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/text/plural.h"
#include "lib/tools/topology/view/fabric.h"
#include "lib/tools/topology/view/part_words.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

constexpr size_t kMostPortsShown = 8;  // of a NIC, on its line
constexpr size_t kMostDevices = 4;     // that are neither GPU nor NIC, below one part

bool is_bridge(const Part& part) {
  return part.kind == PartKind::kPcieSwitch || part.kind == PartKind::kHostBridge;
}

class TreeText {
 public:
  explicit TreeText(const HostTree& host) : host_(host), names_(names_of_parts(host)) {}

  std::string write() {
    write_all(host_.roots(), 0);
    for (const CrossLinkKind kind :
         {CrossLinkKind::kNvLink, CrossLinkKind::kXgmi, CrossLinkKind::kChipToChip})
      write_cross_links(kind);
    for (const std::string& absent : host_.absent) text_ += fmt::format("absent: {}\n", absent);
    for (const std::string& note : host_.notes) text_ += fmt::format("note: {}\n", note);
    return std::move(text_);
  }

 private:
  // A part and the bridges above it that have no line.
  struct Shown {
    PartId id;
    int bridges = 0;
  };

  [[nodiscard]] Shown descend(PartId id) const {
    Shown shown{id};
    while (is_bridge(host_[shown.id]) && host_[shown.id].below.size() == 1) {
      if (host_[shown.id].kind == PartKind::kPcieSwitch) ++shown.bridges;
      shown.id = host_[shown.id].below[0];
    }
    return shown;
  }

  // The widths of its neighbours' titles and heads.
  struct Widths {
    size_t title = 0;
    size_t head = 0;
  };
  void write_measured(const Part& part, int level) {
    for (const std::string& line : part.measured) write_line(level, "measured: " + line);
  }
  void write_line(int level, const std::string& line) {
    text_ += fmt::format("{:{}}{}\n", "", 2 * level, line);
  }

  // The targets of a part's links of one kind, and their numbers, in the source's order.
  struct Ends {
    PartId from = kNoPart;
    CrossLinkKind kind = CrossLinkKind::kNvLink;
    std::vector<std::pair<std::string, int>> targets{};
    double gb_per_s = 0;  // of each; 0: unknown

    [[nodiscard]] std::string words() const {
      std::vector<std::string> all;
      for (const auto& [target, count] : targets)
        all.push_back(fmt::format("{} to {}", count, target));
      if (gb_per_s > 0) all.push_back(fmt::format("{:g} GB/s each", gb_per_s));
      return join_words(all);
    }
  };

  // A part's name without its bus id.
  [[nodiscard]] std::string title_of(PartId id) const {
    switch (host_[id].kind) {
      case PartKind::kNic:
        return is_on_pcie(host_, id) ? "NIC" : "virtual NIC";
      case PartKind::kPcieSwitch:
        return "switch";
      case PartKind::kPcieDevice:
        return "device";
      default:
        return names_[id];
    }
  }

  [[nodiscard]] std::string head_of(PartId id, size_t width) const {
    const Part& part = host_[id];
    const bool has_bus = !part.bus_id.empty() && part.kind != PartKind::kHostBridge;
    return has_bus ? fmt::format("{:<{}}  {}", title_of(id), width, part.bus_id) : title_of(id);
  }

  [[nodiscard]] std::string ports_of(const Part& nic) const {
    std::vector<std::string> words;
    size_t ports = 0;
    for (const PartId below : nic.below) {
      const auto* port = std::get_if<PortInfo>(&host_[below].info);
      if (port != nullptr && ++ports <= kMostPortsShown) words.push_back(words_of(*port));
    }
    if (ports > kMostPortsShown)
      words.push_back(fmt::format("and {} more", ports - kMostPortsShown));
    return join_words(words);
  }

  [[nodiscard]] std::string body_of(const Shown& shown) const {
    const Part& part = host_[shown.id];
    if (const auto* node = std::get_if<NumaNodeInfo>(&part.info)) {
      const std::string host = count_hosts(host_) > 1 ? "host " + node->host_hash : "";
      return join_words({host, words_of(*node)});
    }
    if (const auto* port = std::get_if<PortInfo>(&part.info)) return words_of(*port);
    std::string body = join_words({words_of_device(part), words_of(part.link)});
    if (shown.bridges > 0) body = join_words({body, "behind " + counted(shown.bridges, "bridge")});
    const std::string ports = part.kind == PartKind::kNic ? ports_of(part) : "";
    return join_words({body, ports}, ": ");
  }

  void write_part(const Shown& shown, int level, Widths widths) {
    const Part& part = host_[shown.id];
    const std::string head = head_of(shown.id, widths.title);
    const std::string body = body_of(shown);
    write_line(level, body.empty() ? head : fmt::format("{:<{}}  {}", head, widths.head, body));
    write_measured(part, level + 1);
    if (part.kind != PartKind::kNic) return write_all(part.below, level + 1);
    std::vector<PartId> below;
    for (const PartId id : part.below) {
      if (host_[id].kind != PartKind::kPort) below.push_back(id);
      if (host_[id].kind == PartKind::kPort) write_measured(host_[id], level + 1);
    }
    write_all(below, level + 1);
  }

  void write_all(const std::vector<PartId>& parts, int level) {
    std::vector<Shown> shown;
    std::vector<Shown> others;
    for (const PartId id : parts) {
      const Shown part = descend(id);
      const bool is_leaf = host_[part.id].below.empty();
      const bool is_other =
          is_leaf && (host_[part.id].kind == PartKind::kPcieDevice || is_bridge(host_[part.id]));
      (is_other ? others : shown).push_back(part);
    }
    std::vector<Shown> lines = shown;
    if (others.size() <= kMostDevices) lines.insert(lines.end(), others.begin(), others.end());
    Widths widths;
    for (const Shown& part : lines) widths.title = std::max(widths.title, title_of(part.id).size());
    for (const Shown& part : lines)
      widths.head = std::max(widths.head, head_of(part.id, widths.title).size());
    for (const Shown& part : shown) write_part(part, level, widths);
    write_others(others, level, widths);
  }

  // Parts that are neither GPU nor NIC, nor lead to one.
  void write_others(const std::vector<Shown>& others, int level, Widths widths) {
    if (others.size() > kMostDevices)
      return write_line(level, counted(others.size(), "other PCIe device"));
    for (const Shown& part : others) write_part(part, level, widths);
  }

  [[nodiscard]] std::string target_of(const CrossLink& link) const {
    if (link.to == kNoPart) {
      if (link.target_class.starts_with(kNvSwitchClass)) return "NVSwitches";
      return link.target_class.starts_with(kCpuBridgeClass) ? "the CPU"
                                                            : link.target +
                                                                  ", which is not in "
                                                                  "the topology";
    }
    if (link.to == link.from) return "itself";
    return host_[link.to].kind == PartKind::kNvSwitch ? "NVSwitches" : names_[link.to];
  }

  [[nodiscard]] std::vector<Ends> all_ends(CrossLinkKind kind) const {
    std::map<PartId, Ends> by_part;
    std::map<std::pair<PartId, std::string>, size_t> index;  // among the targets
    for (const CrossLink& link : host_.cross_links()) {
      if (link.kind != kind) continue;
      Ends& ends = by_part.try_emplace(link.from, Ends{link.from, kind}).first->second;
      const std::string target = target_of(link);
      const auto [place, is_new] = index.try_emplace({link.from, target}, ends.targets.size());
      if (is_new) ends.targets.emplace_back(target, 0);
      ends.targets[place->second].second += link.count;
      ends.gb_per_s = link.gb_per_s;
    }
    std::vector<Ends> all;
    for (const PartId id : host_.all_of(PartKind::kGpu)) {
      if (const auto found = by_part.find(id); found != by_part.end()) all.push_back(found->second);
    }
    return all;
  }

  // The links between any two of these, if they are as many everywhere; else 0.
  [[nodiscard]] int links_of_mesh(const std::vector<Ends>& all) const {
    if (all.size() < 3 || all[0].targets.empty()) return 0;
    const int count = all[0].targets[0].second;
    for (const Ends& ends : all) {
      if (ends.targets.size() + 1 != all.size()) return 0;
      for (const Ends& other : all) {
        const std::pair wanted(names_[other.from], count);
        if (other.from != ends.from &&
            std::ranges::find(ends.targets, wanted) == ends.targets.end())
          return 0;
      }
    }
    return count;
  }

  // "NVLinks of GPU0-GPU7, each: 18 to NVSwitches".
  void write_cross_links(CrossLinkKind kind) {
    const std::vector<Ends> all = all_ends(kind);
    const int mesh = links_of_mesh(all);
    for (size_t first = 0; first < all.size();) {
      std::vector<std::string> names;
      size_t next = first;
      const auto alike = [&](const Ends& ends) {
        return mesh > 0 || ends.words() == all[first].words();
      };
      for (; next < all.size() && alike(all[next]); ++next) names.push_back(names_[all[next].from]);
      const std::string what =
          mesh > 0 ? fmt::format("{} between any two", mesh) : all[first].words();
      text_ += fmt::format("{}s of {}{}: {}\n", to_string(kind), words_of_range(names),
                           mesh == 0 && names.size() > 1 ? ", each" : "", what);
      first = next;
    }
  }

  const HostTree& host_;
  std::vector<std::string> names_;
  std::string text_;
};

std::string summary_of(const HostTree& host) {
  std::vector<std::string> words;
  if (const size_t hosts = count_hosts(host); hosts > 1) words.push_back(counted(hosts, "host"));
  for (const PartKind kind : {PartKind::kNumaNode, PartKind::kGpu, PartKind::kNic, PartKind::kPort,
                              PartKind::kNvSwitch}) {
    const size_t count = host.all_of(kind).size();
    if (count > 0) words.push_back(counted(count, to_string(kind)));
  }
  return join_words(words);
}

class SwitchText {
 public:
  explicit SwitchText(const Topology& topology) : topology_(topology), switches_(topology) {}

  std::string write() {
    for (const size_t top : switches_.roots) write_switch(top, 0);
    return std::move(text_);
  }

 private:
  void write_switch(size_t index, int level) {
    const NetworkSwitch& one = topology_.switches[index];
    std::vector<std::string> hosts;
    for (const size_t host : switches_.hosts[index]) hosts.push_back(topology_.hosts[host].name);
    std::vector<std::string> words = {words_of_range(hosts)};
    if (one.uplink_gb_per_s > 0) words.push_back(fmt::format("up {:g} GB/s", one.uplink_gb_per_s));
    const std::string body = join_words(words, "; ");
    text_ += fmt::format("{:{}}{} {}{}{}\n", "", 2 * level, one.is_block ? "block" : "switch",
                         one.name, body.empty() ? "" : ": ", body);
    for (const size_t below : switches_.below[index]) write_switch(below, level + 1);
  }

  const Topology& topology_;
  SwitchTree switches_;
  std::string text_;
};

// "graph 0, ring: 2 channels; 12 GB/s between GPUs (SYS), 12 GB/s to the network (PIX)".
std::string head_of(const ChannelGraph& graph) {
  const auto speed = [](const std::optional<double>& gb_per_s, const std::string& type,
                        std::string_view where) {
    if (!gb_per_s) return std::string();
    return fmt::format("{:g} GB/s {}{}", *gb_per_s, where, type.empty() ? "" : " (" + type + ")");
  };
  std::string text = graph.id ? fmt::format("graph {}", *graph.id) : "graph";
  if (graph.pattern) {
    const std::string_view name = name_of_pattern(*graph.pattern);
    text += name.empty() ? fmt::format(", pattern {}", *graph.pattern) : fmt::format(", {}", name);
  }
  const std::string speeds =
      join_words({speed(graph.speed_intra, graph.type_intra, "between GPUs"),
                  speed(graph.speed_inter, graph.type_inter, "to the network")});
  return join_words({text + ": " + counted(graph.channels.size(), "channel"), speeds}, "; ");
}

std::string text_of(const ChannelGraph& graph) {
  std::string text = head_of(graph) + '\n';
  for (const Channel& channel : graph.channels) {
    std::vector<std::string> words;
    for (const ChannelDevice& device : channel.devices) {
      const bool is_gpu = device.kind == ChannelDevice::Kind::kGpu;
      words.push_back(fmt::format("{}{}", is_gpu ? "GPU" : "NET", device.dev));
    }
    text += fmt::format("  {}\n", join_words(words, " "));
  }
  return text;
}

}  // namespace

std::string tree_text(const HostTree& host) { return TreeText(host).write(); }

std::string tree_text(const Topology& topology) {
  std::string text;
  const bool is_cluster = topology.hosts.size() > 1 || !topology.switches.empty();
  if (!topology.channel_graphs.empty()) {
    text = fmt::format("{} ({}): {}\n", topology.name, topology.source,
                       counted(topology.channel_graphs.size(), "graph"));
    for (const ChannelGraph& graph : topology.channel_graphs) text += text_of(graph);
  }
  if (is_cluster) {
    text = fmt::format(
        "{} ({}): {}{}\n", topology.name, topology.source, counted(topology.hosts.size(), "host"),
        topology.switches.empty() ? "" : ", " + counted(topology.switches.size(), "switch"));
    text += SwitchText(topology).write();
  }
  for (size_t i = 0; i < topology.trees.size(); ++i) {
    const HostTree& tree = *topology.trees[i];
    const std::vector<std::string> names = names_of_hosts(topology, i);
    const std::string title = is_cluster ? "\n" + words_of_range(names) : tree.name;
    text += fmt::format("{} ({}): {}\n", title, tree.source, summary_of(tree));
    text += tree_text(tree);
  }
  for (const std::string& note : topology.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace gxp

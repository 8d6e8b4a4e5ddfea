// host_of_matrix().
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/text/plural.h"
#include "lib/tools/topology/read/smi_matrix.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

// The innermost part that two devices share, nearest first; nvidia-smi's words for it.
enum Level : int { kSwitch, kTopSwitch, kHostBridge, kNumaNode, kHost };
constexpr std::array<std::string_view, 5> kNearnessWords = {"PIX", "PXB", "PHB", "NODE", "SYS"};
constexpr int kLevels = kHost;         // those that have parts of their own
constexpr size_t kMostNamedCells = 4;  // of those that the host does not give back
constexpr size_t kMostMeshed = 4;      // GPUs joined by NVLink without NVSwitches
constexpr int kMostLinks = 18;         // NVLinks of a GPU: H100, B200

// How near devices are, level by level, as groups: those of a level lie within those of the next.
class Grouping {
 public:
  explicit Grouping(const PastedMatrix& matrix) : matrix_(matrix), near_(matrix.cells.size()) {
    for (size_t a = 0; a < size(); ++a) {
      for (const std::string& cell : matrix.cells[a]) {
        const auto found = std::ranges::find(kNearnessWords, cell);
        near_[a].push_back(found == kNearnessWords.end() ? -1
                                                         : int(found - kNearnessWords.begin()));
      }
    }
    std::vector<size_t> each(size());
    for (size_t i = 0; i < size(); ++i) each[i] = i;
    for (int level = 0; level < kLevels; ++level) {
      levels_[size_t(level)] = level == 0 ? each : levels_[size_t(level - 1)];
      merge_near(level);
    }
    merge_by_affinity();
  }

  [[nodiscard]] size_t size() const { return matrix_.cells.size(); }
  // The group of a device at a level, by its first device.
  [[nodiscard]] size_t group(int level, size_t device) const {
    return levels_[size_t(level)][device];
  }
  // The matrix's cell; -1: none of these.
  [[nodiscard]] int known(size_t a, size_t b) const { return near_[a][b]; }
  // The cell of the host's own matrix.
  [[nodiscard]] int given(size_t a, size_t b) const {
    for (int level = 0; level < kLevels; ++level) {
      if (group(level, a) == group(level, b)) return level;
    }
    return kLevels;
  }

 private:
  using Counts = std::vector<std::vector<int>>;

  // Joins the two groups of which most cells between them say that they are near, as long as these
  // are not fewer than those that say otherwise: a matrix need not be a tree's.
  void merge_near(int level) {
    Counts agree(size(), std::vector<int>(size(), 0));
    Counts oppose = agree;
    for (size_t a = 0; a < size(); ++a) {
      for (size_t b = 0; b < size(); ++b) {
        const size_t from = group(level, a), to = group(level, b);
        if (from == to || near_[a][b] < 0) continue;
        ++(near_[a][b] <= level ? agree : oppose)[from][to];
      }
    }
    for (;;) {
      size_t best_a = 0, best_b = 0;
      for (size_t a = 0; a < size(); ++a) {
        for (size_t b = a + 1; b < size(); ++b) {
          const auto margin = [&](size_t i, size_t j) { return agree[i][j] - oppose[i][j]; };
          if (agree[a][b] == 0 || margin(a, b) < 0) continue;
          if (best_b == 0 || margin(a, b) > margin(best_a, best_b))
            std::tie(best_a, best_b) = std::pair(a, b);
        }
      }
      if (best_b == 0) return;
      join(level, best_a, best_b);
      for (Counts* counts : {&agree, &oppose}) {
        for (size_t i = 0; i < size(); ++i) {
          (*counts)[best_a][i] += std::exchange((*counts)[best_b][i], 0);
          (*counts)[i][best_a] += std::exchange((*counts)[i][best_b], 0);
        }
        (*counts)[best_a][best_a] = 0;
      }
    }
  }

  // NVLinks hide where GPUs lie to each other; those of the same CPUs are taken for neighbours, and
  // where no CPUs are said, all that are not known to be apart.
  void merge_by_affinity() {
    std::vector<std::vector<bool>> apart(size(), std::vector<bool>(size(), false));  // of groups
    const auto set_apart = [&](size_t a, size_t b) {
      apart[group(kNumaNode, a)][group(kNumaNode, b)] = true;
    };
    const auto affinity = [&](size_t i) {
      const PastedMatrix::Device& device = matrix_.devices[i];
      const std::string& nodes = device.numa_affinity;  // behind the first of memory alone
      return device.cpu_affinity + ' ' + nodes.substr(0, nodes.find_first_of(",-"));
    };
    for (size_t a = 0; a < size(); ++a) {
      for (size_t b = 0; b < size(); ++b) {
        const bool differ = affinity(a) != affinity(b) && affinity(a) != " " && affinity(b) != " ";
        if (near_[a][b] > kNumaNode || differ) set_apart(a, b);
      }
    }
    for (size_t a = 0; a < size(); ++a) {
      for (size_t b = a + 1; b < size(); ++b) {
        const size_t into = group(kNumaNode, a), from = group(kNumaNode, b);
        if (near_[a][b] >= 0 || into == from || apart[into][from]) continue;
        join(kNumaNode, into, from);
        for (size_t i = 0; i < size(); ++i) {
          if (apart[from][i]) apart[into][i] = apart[i][into] = true;
        }
      }
    }
  }

  void join(int level, size_t into, size_t from) {
    for (size_t& label : levels_[size_t(level)]) label = label == from ? into : label;
  }

  const PastedMatrix& matrix_;
  std::vector<std::vector<int>> near_;
  std::array<std::vector<size_t>, kLevels> levels_;
};

std::string said(const std::string& word) { return word == "N/A" ? "" : word; }

// Of "0,2-17" the processors' node is the first; the others are of memory alone.
std::optional<int> first_node(std::string_view nodes) {
  size_t length = 0;
  const auto first = leading_number<int>(nodes, &length);
  return length > 0 ? std::optional(first) : std::nullopt;
}

class SmiBuilder {
 public:
  SmiBuilder(const PastedMatrix& matrix, const std::string& name)
      : matrix_(matrix), groups_(matrix), parts_(matrix.devices.size(), kNoPart) {
    host_.name = name;
    host_.source = matrix.is_p2p ? "nvidia-smi topo -p2p" : "nvidia-smi topo -m";
    host_.notes = matrix.notes;
    host_.places_known = !matrix.is_p2p;
    host_.speeds_known = host_.port_speeds_known = false;
  }

  HostTree build() {
    for (size_t device = 0; device < parts_.size(); ++device) add_device(device);
    add_nvlinks();
    add_peer_states();
    note_guesses();
    note_differences();
    return std::move(host_);
  }

 private:
  void note(const std::string& what) { host_.notes.push_back(host_.name + ": " + what); }
  [[nodiscard]] bool is_gpu(size_t device) const { return matrix_.devices[device].is_gpu; }
  [[nodiscard]] const std::string& column(size_t device) const {
    return matrix_.devices[device].column;
  }

  // The devices of the group at `level` that are in different groups at the level below.
  [[nodiscard]] size_t groups_within(int level, size_t device) const {
    std::set<size_t> within;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (groups_.group(level, i) != groups_.group(level, device)) continue;
      within.insert(level == 0 ? i : groups_.group(level - 1, i));
    }
    return within.size();
  }

  [[nodiscard]] NumaNodeInfo numa_info(size_t group) const {
    NumaNodeInfo info;
    std::set<size_t> groups_of_number;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const PastedMatrix::Device& device = matrix_.devices[i];
      if (groups_.group(kNumaNode, i) != group) continue;
      const auto cpus = CpuSet::parse_list(device.cpu_affinity);
      if (info.affinity.empty() && cpus && !cpus->empty()) info.affinity = cpus->to_map();
      if (!info.number) info.number = first_node(device.numa_affinity);
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      const auto number = first_node(matrix_.devices[i].numa_affinity);
      if (number && number == info.number) groups_of_number.insert(groups_.group(kNumaNode, i));
    }
    if (groups_of_number.size() > 1) info.number.reset();  // it is no NUMA node's own
    return info;
  }

  PartId numa_node_of(size_t device) {
    const size_t group = groups_.group(kNumaNode, device);
    const auto [node, is_new] = bridges_.try_emplace({kNumaNode, group}, kNoPart);
    if (is_new) node->second = host_.add({.kind = PartKind::kNumaNode, .info = numa_info(group)});
    return node->second;
  }

  PartId bridge_of(int level, PartKind kind, size_t device, PartId above) {
    const auto [bridge, is_new] =
        bridges_.try_emplace({level, groups_.group(level, device)}, kNoPart);
    if (is_new) bridge->second = host_.add({.kind = kind, .above = above});
    return bridge->second;
  }

  void add_device(size_t device) {
    PartId above = bridge_of(kHostBridge, PartKind::kHostBridge, device, numa_node_of(device));
    const bool has_levels = groups_within(kTopSwitch, device) > 1;
    if (has_levels) above = bridge_of(kTopSwitch, PartKind::kPcieSwitch, device, above);
    if (has_levels || groups_within(kSwitch, device) > 1)
      above = bridge_of(kSwitch, PartKind::kPcieSwitch, device, above);
    const PastedMatrix::Device& read = matrix_.devices[device];
    if (read.is_gpu) {
      parts_[device] = host_.add({.kind = PartKind::kGpu,
                                  .above = above,
                                  .info = GpuInfo{.number = read.number,
                                                  .near_nodes = said(read.numa_affinity),
                                                  .memory_node = said(read.memory_node)},
                                  .place = read.place});
      return;
    }
    const PartId nic =
        host_.add({.kind = PartKind::kNic, .above = above, .info = NicInfo{}, .place = read.place});
    PortInfo port{.number = read.number, .name = read.name};
    parts_[device] = host_.add(
        {.kind = PartKind::kPort, .above = nic, .info = std::move(port), .place = read.place});
  }

  // 0: none.
  [[nodiscard]] int links_between(size_t a, size_t b) const {
    const std::string& cell = matrix_.cells[a][b];
    return cell.starts_with("NV") ? whole_number<int>(cell.substr(2)).value_or(0) : 0;
  }

  // Links of all GPUs to their peers, by GPU; none: there is no NVLink.
  [[nodiscard]] std::vector<std::vector<int>> links_of_gpus() const {
    std::vector<std::vector<int>> links;
    for (size_t a = 0; a < parts_.size(); ++a) {
      if (!is_gpu(a)) continue;
      links.emplace_back();
      for (size_t b = 0; b < parts_.size(); ++b) {
        if (a != b && is_gpu(b)) links.back().push_back(links_between(a, b));
      }
    }
    return links;
  }

  [[nodiscard]] bool has_nvswitch() const {
    std::set<int> counts;
    const auto links = links_of_gpus();
    for (const std::vector<int>& of_gpu : links) {
      if (std::accumulate(of_gpu.begin(), of_gpu.end(), 0) > kMostLinks) return true;
      counts.insert(of_gpu.begin(), of_gpu.end());
    }
    return links.size() > kMostMeshed && counts.size() == 1 && *counts.begin() > 0;
  }

  void add_links_to_nvswitch() {
    const PartId nvswitch = host_.add({.kind = PartKind::kNvSwitch});
    for (size_t a = 0; a < parts_.size(); ++a) {
      int links = 0;
      for (size_t b = 0; b < parts_.size(); ++b) links = std::max(links, links_between(a, b));
      if (links > 0) host_.add_cross_link({.from = parts_[a], .to = nvswitch, .count = links});
    }
    note("NVLinks between GPUs are assumed to go through NVSwitches");
  }

  void add_nvlinks() {
    if (has_nvswitch()) return add_links_to_nvswitch();
    for (size_t a = 0; a < parts_.size(); ++a) {
      for (size_t b = 0; b < parts_.size(); ++b) {
        if (const int links = links_between(a, b); a != b && links > 0)
          host_.add_cross_link({.from = parts_[a], .to = parts_[b], .count = links});
      }
    }
  }

  void add_peer_states() {
    for (size_t a = 0; a < matrix_.peer_states.size(); ++a) {
      for (size_t b = 0; b < parts_.size(); ++b) {
        if (const std::string& state = matrix_.peer_states[a][b]; !state.empty())
          host_.peer_states[{parts_[a], parts_[b]}] = state;
      }
    }
  }

  void note_guesses() {
    note("the matrix has no bus ids, speeds or device models");
    if (matrix_.is_p2p) {
      note(
          "the matrix shows which peers can reach each other, but not their location: all are "
          "assumed to be below one NUMA node");
      return;
    }
    size_t hidden = 0;
    for (size_t a = 0; a < parts_.size(); ++a) {
      for (size_t b = 0; b < a; ++b) hidden += groups_.known(a, b) < 0 ? 1 : 0;
    }
    if (hidden > 0)
      note(
          fmt::format("the matrix does not show the PCIe paths of {} (NVLink, or a missing row); "
                      "they are inferred from CPU affinity and other pairs",
                      counted(hidden, "pair")));
  }

  void note_differences() {
    size_t differences = 0;
    for (size_t a = 0; a < parts_.size(); ++a) {
      for (size_t b = a + 1; b < parts_.size(); ++b) {
        const int known = groups_.known(a, b);
        const int given = groups_.given(a, b);
        if (known < 0 || known == given || ++differences > kMostNamedCells) continue;
        note(fmt::format("{} to {} is {}, but {} by the other cells", column(a), column(b),
                         kNearnessWords[size_t(known)], kNearnessWords[size_t(given)]));
      }
    }
    if (differences > kMostNamedCells)
      note(fmt::format("{} more pairs contradict other cells; the matrix does not describe a tree",
                       differences - kMostNamedCells));
  }

  const PastedMatrix& matrix_;
  Grouping groups_;
  HostTree host_;
  std::vector<PartId> parts_;                         // by device
  std::map<std::pair<int, size_t>, PartId> bridges_;  // by level and group
};

}  // namespace

HostTree host_of_matrix(const PastedMatrix& matrix, const std::string& name) {
  return SmiBuilder(matrix, name).build();
}

}  // namespace gxp

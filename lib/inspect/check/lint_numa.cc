// NUMA nodes, which NCCL calls CPUs, and what no part of a topology is known to have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "lib/inspect/check/lint_rules.h"
#include "lib/topo/nccl/nccl_rules.h"
#include "lib/topo/read/nccl_fields.h"

namespace gxp {
namespace {

// From the lowest word up; empty if it is no mask.
std::vector<uint32_t> words_of(std::string_view affinity) {
  std::vector<uint32_t> words;
  while (!affinity.empty()) {
    const size_t comma = affinity.rfind(',');
    const std::string_view text =
        comma == std::string_view::npos ? affinity : affinity.substr(comma + 1);
    uint32_t word = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), word, 16);
    if (error != std::errc() || end != text.data() + text.size()) return {};
    words.push_back(word);
    affinity = comma == std::string_view::npos ? "" : affinity.substr(0, comma);
  }
  return words;
}

bool is_empty(const std::vector<uint32_t>& words) {
  return std::ranges::all_of(words, [](uint32_t word) { return word == 0; });
}

bool overlap(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if ((a[i] & b[i]) != 0) return true;
  }
  return false;
}

const NumaNodeInfo& info_of(const LintSubject& subject, PartId id) {
  static const NumaNodeInfo kNone;
  const auto* info = std::get_if<NumaNodeInfo>(&subject.host[id].info);
  return info == nullptr ? kNone : *info;
}

bool has_attribute(const Part& part, std::string_view name) {
  return std::ranges::any_of(part.other, [&](const auto& one) { return one.first == name; });
}

// All field names of all elements; an attribute that stands twice is among Part::other as well.
bool is_known(std::string_view attribute) {
  const size_t slash = attribute.rfind('/');
  if (slash != std::string_view::npos) attribute.remove_prefix(slash + 1);
  if (attribute.empty()) return true;
  constexpr std::array<std::string_view, 7> kOfLinks = {
      "busid", "link_speed", "link_width", "target", "tclass", "count", "bw"};
  const auto among = [&](const auto& fields) {
    return std::ranges::any_of(fields, [&](const auto& one) { return one.attribute == attribute; });
  };
  return std::ranges::find(kOfLinks, attribute) != kOfLinks.end() ||
         std::ranges::find(kKeptAttributes, attribute) != kKeptAttributes.end() ||
         among(kCpuFields) || among(kPciFields) || among(kGpuFields) || among(kNetFields);
}

void check_unknown_attribute(const LintSubject& subject, const Say& say) {
  const auto check = [&](const Attributes& attributes, SourcePlace place) {
    for (const auto& [name, value] : attributes) {
      if (!is_known(name)) say(place, fmt::format("attribute {}", name.substr(0, kShown)));
    }
  };
  check(subject.host.other, {1, 1});
  for (const Part& part : subject.host.parts()) check(part.other, part.place);
  for (const CrossLink& link : subject.host.cross_links()) check(link.other, link.place);
}

void check_unknown_element(const LintSubject& subject, const Say& say) {
  const auto check = [&](const std::string& elements, SourcePlace place) {
    if (!elements.empty())
      say(place,
          fmt::format("within it: {}", elements.substr(0, std::min(kShown, elements.find('\n')))));
  };
  check(subject.host.unknown_elements, {1, 1});
  for (const Part& part : subject.host.parts()) {
    check(part.unknown_elements, part.place);
    for (const auto& [name, value] : part.other) {
      if (name == "gpu/" || name == "nic/") check(value, part.place);
    }
  }
}

void check_numa_id(const LintSubject& subject, const Say& say) {
  for (const PartId id : subject.host.all_of(PartKind::kNumaNode)) {
    const std::optional<int> number = info_of(subject, id).number;
    if (number.value_or(-1) < 0)
      say(subject.host[id].place, number ? "numaid is -1" : "there is no numaid");
  }
}

void check_numa_id_twice(const LintSubject& subject, const Say& say) {
  std::map<std::pair<std::string, int>, PartId> seen;
  for (const PartId id : subject.host.all_of(PartKind::kNumaNode)) {
    const NumaNodeInfo& info = info_of(subject, id);
    if (!info.number || *info.number < 0) continue;
    const auto [first, is_new] = seen.try_emplace({info.host_hash, *info.number}, id);
    if (!is_new) {
      say(subject.host[id].place,
          fmt::format("numaid {} stands twice, first in line {}", *info.number,
                      subject.host[first->second].place.line));
    }
  }
}

void check_affinity_empty(const LintSubject& subject, const Say& say) {
  for (const PartId id : subject.host.all_of(PartKind::kNumaNode)) {
    const std::string& affinity = info_of(subject, id).affinity;
    const bool is_said = !affinity.empty() || has_attribute(subject.host[id], "affinity");
    if (is_empty(words_of(affinity)))
      say(subject.host[id].place,
          !is_said ? fmt::format("{} has no affinity", subject.names[id])
                   : fmt::format("affinity \"{}\" names no CPU", affinity.substr(0, kShown)));
  }
}

// Of each node the first that it overlaps with.
void check_affinity_overlap(const LintSubject& subject, const Say& say) {
  std::vector<std::pair<PartId, std::vector<uint32_t>>> masks;
  for (const PartId id : subject.host.all_of(PartKind::kNumaNode)) {
    const NumaNodeInfo& info = info_of(subject, id);
    const std::vector<uint32_t> words = words_of(info.affinity);
    const auto other = std::ranges::find_if(masks, [&](const auto& mask) {
      return info_of(subject, mask.first).host_hash == info.host_hash &&
             overlap(words, mask.second);
    });
    if (other != masks.end()) {
      say(subject.host[id].place, fmt::format("the affinities of {} and {} have CPUs in common",
                                              subject.names[id], subject.names[other->first]));
    }
    masks.emplace_back(id, words);
  }
}

void check_cpu_unknown(const LintSubject& subject, const Say& say) {
  for (const PartId id : subject.host.all_of(PartKind::kNumaNode)) {
    const NumaNodeInfo& info = info_of(subject, id);
    std::vector<std::string_view> missing;
    if (info.architecture.empty()) missing.emplace_back("arch");
    const bool needs_vendor = info.architecture.empty() || info.architecture == "x86_64";
    if (needs_vendor && info.vendor.empty()) missing.emplace_back("vendor");
    const bool needs_model = info.vendor == "GenuineIntel";
    if (needs_model && !info.family) missing.emplace_back("familyid");
    if (needs_model && !info.model) missing.emplace_back("modelid");
    if (!missing.empty()) {
      say(subject.host[id].place,
          fmt::format("{} has no {}", subject.names[id], fmt::join(missing, ", ")));
    } else if (cpu_vendor(info) == CpuVendor::kUnknown) {
      say(subject.host[id].place,
          fmt::format("{}: arch \"{}\", vendor \"{}\" are none that NCCL knows", subject.names[id],
                      info.architecture.substr(0, kShown), info.vendor.substr(0, kShown)));
    }
  }
}

}  // namespace

std::span<const LintRow> lint_numa_rows() {
  using enum Severity;
  static constexpr auto kRows = std::to_array<LintRow>({
      {{"unknown-attribute", kNote, "an attribute that nobody knows",
        "NCCL passes over it; a misspelt one is a fact that is lost",
        "correct its name, or leave it out"},
       nullptr,
       check_unknown_attribute},
      {{"unknown-element", kNote, "an element that nobody knows here",
        "NCCL passes over it, and what lies within", "correct its name or place, or leave it out"},
       nullptr,
       check_unknown_element},
      {{"numa-id-missing", kError, "a NUMA node without a number",
        "NCCL stops at a <cpu> without numaid; -1 is what kernels without NUMA say, and matches no "
        "node",
        "number the nodes from 0, as in /sys/devices/system/node"},
       nullptr,
       check_numa_id,
       true},
      {{"numa-id-twice", kError, "two NUMA nodes of one number",
        "NCCL finds the first when it looks for a GPU's node",
        "give each node its own numaid, or put both into one <cpu>"},
       nullptr,
       check_numa_id_twice},
      {{"affinity-empty", kWarning, "a NUMA node without CPUs",
        "NCCL's threads are then not bound near the GPU, and run anywhere",
        "write /sys/devices/system/node/nodeN/cpumap into affinity"},
       nullptr,
       check_affinity_empty,
       true},
      {{"affinity-overlap", kWarning, "two NUMA nodes with a CPU in common",
        "a thread bound to one node may run on the other",
        "write each node's own /sys/devices/system/node/nodeN/cpumap"},
       nullptr,
       check_affinity_overlap},
      {{"cpu-unknown", kWarning, "what processor it is is not known",
        "the bandwidth between NUMA nodes goes by it; NCCL asks the machine that it runs on, or "
        "guesses",
        "add arch, vendor, familyid and modelid, as /proc/cpuinfo has them"},
       nullptr,
       check_cpu_unknown,
       true},
  });
  return kRows;
}

}  // namespace gxp

// NUMA nodes, which NCCL calls CPUs; attributes and elements that are not known.

#include <algorithm>
#include <array>

#include "lib/base/text/joined.h"
#include "lib/tools/topology/check/lint_rules.h"
#include "lib/tools/topology/read/nccl_fields.h"
#include "lib/topo/model/cpu_set.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

// Masks with 0x, which other sources write, are none in NCCL's XML.
CpuSet cpus_of_node(const Part& node) {
  const std::string& affinity = info_of<NumaNodeInfo>(node).affinity;
  return affinity.find('x') == std::string::npos ? cpus_of(node) : CpuSet();
}

bool has_attribute(const Part& part, std::string_view name) {
  return std::ranges::any_of(part.other, [&](const auto& one) { return one.first == name; });
}

// The field names of all elements; Part::other also has attributes that were given twice.
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

void check_unknown_attribute(const LintSubject& subject, const LintReporter& report) {
  const auto check = [&](const Attributes& attributes, SourceLocation place) {
    for (const auto& [name, value] : attributes) {
      if (!is_known(name)) report(place, "attribute {}", name.substr(0, kShown));
    }
  };
  check(subject.host.other, {1, 1});
  for (const Part& part : subject.host.parts()) check(part.other, part.place);
  for (const CrossLink& link : subject.host.cross_links()) check(link.other, link.place);
}

void check_unknown_element(const LintSubject& subject, const LintReporter& report) {
  const auto check = [&](const std::string& elements, SourceLocation place) {
    if (!elements.empty())
      report(place, "within it: {}", elements.substr(0, std::min(kShown, elements.find('\n'))));
  };
  check(subject.host.unknown_elements, {1, 1});
  for (const Part& part : subject.host.parts()) {
    check(part.unknown_elements, part.place);
    for (const auto& [name, value] : part.other) {
      if (name == "gpu/" || name == "nic/") check(value, part.place);
    }
  }
}

void check_numa_id(const LintPart& node, const LintReporter& report) {
  if (!info_of<NumaNodeInfo>(node.part).number) report(node.place(), "there is no numaid");
}

void check_numa_id_twice(const LintSubject& subject, const LintReporter& report) {
  using Key = std::optional<std::pair<std::string, std::string>>;
  const auto key_of = [](const Part& part) {
    const auto& node = info_of<NumaNodeInfo>(part);
    const int number = node.number.value_or(-1);
    return number < 0 ? Key() : Key({std::to_string(number), ""});
  };
  report_duplicates(subject, subject.host.all_of(PartKind::kNumaNode), "numaid", key_of, report);
}

void check_affinity_empty(const LintPart& node, const LintReporter& report) {
  const std::string& affinity = info_of<NumaNodeInfo>(node.part).affinity;
  if (!cpus_of_node(node.part).empty()) return;
  if (affinity.empty() && !has_attribute(node.part, "affinity")) {
    report(node.place(), "{} has no affinity", node.name);
  } else {
    report(node.place(), "affinity \"{}\" names no CPU", affinity.substr(0, kShown));
  }
}

// For each node, the first other that it overlaps with.
void check_affinity_overlap(const LintSubject& subject, const LintReporter& report) {
  std::vector<std::pair<PartId, CpuSet>> before;
  for (const PartId id : subject.host.all_of(PartKind::kNumaNode)) {
    const auto hash_of = [&](PartId node) -> const std::string& {
      return info_of<NumaNodeInfo>(subject.host[node]).host_hash;
    };
    const CpuSet cpus = cpus_of_node(subject.host[id]);
    const auto other = std::ranges::find_if(before, [&](const auto& node) {
      return hash_of(node.first) == hash_of(id) && cpus.intersects(node.second);
    });
    if (other != before.end())
      report(subject.host[id].place, "the affinities of {} and {} have CPUs in common",
             subject.names[id], subject.names[other->first]);
    before.emplace_back(id, cpus);
  }
}

void check_cpu_unknown(const LintPart& node, const LintReporter& report) {
  const auto& info = info_of<NumaNodeInfo>(node.part);
  std::vector<std::string_view> missing;
  if (info.architecture.empty()) missing.emplace_back("arch");
  const bool needs_vendor = info.architecture.empty() || info.architecture == "x86_64";
  if (needs_vendor && info.vendor.empty()) missing.emplace_back("vendor");
  const bool needs_model = info.vendor == "GenuineIntel";
  if (needs_model && !info.family) missing.emplace_back("familyid");
  if (needs_model && !info.model) missing.emplace_back("modelid");
  if (!missing.empty()) {
    report(node.place(), "{} has no {}", node.name, joined(missing, ", "));
  } else if (cpu_vendor(info) == CpuVendor::kUnknown) {
    report(node.place(), "{}: arch \"{}\", vendor \"{}\" are unknown to NCCL", node.name,
           info.architecture.substr(0, kShown), info.vendor.substr(0, kShown));
  }
}

constexpr auto kNumaRules = [] {
  using enum Severity;
  return std::to_array<LintRule>({
      {"unknown-attribute", kNote, "an unknown attribute",
       "NCCL ignores it; if the name is misspelt, its value is lost",
       "correct its name, or leave it out", check_unknown_attribute},
      {"unknown-element", kNote, "an element that is unknown here",
       "NCCL ignores it and its content", "correct its name or place, or leave it out",
       check_unknown_element},
      {"numa-id-missing", kError, "a NUMA node without a number",
       "NCCL stops at a <cpu> without numaid",
       "number the nodes from 0, as in /sys/devices/system/node; -1 where Linux knows none",
       each<PartKind::kNumaNode, check_numa_id>, true},
      {"numa-id-twice", kError, "two NUMA nodes with the same number",
       "NCCL finds the first when it looks for a GPU's node",
       "give each node its own numaid, or put both into one <cpu>", check_numa_id_twice},
      {"affinity-empty", kWarning, "a NUMA node without CPUs",
       "NCCL's threads are then not bound near the GPU, and run anywhere",
       "write /sys/devices/system/node/nodeN/cpumap into affinity",
       each<PartKind::kNumaNode, check_affinity_empty>, true},
      {"affinity-overlap", kWarning, "two NUMA nodes with a CPU in common",
       "a thread bound to one node may run on the other",
       "write each node's own /sys/devices/system/node/nodeN/cpumap", check_affinity_overlap},
      {"cpu-unknown", kWarning, "an unknown processor",
       "the bandwidth between NUMA nodes depends on it; NCCL asks the machine that it runs on, or "
       "guesses",
       "add arch, vendor, familyid and modelid, as /proc/cpuinfo has them",
       each<PartKind::kNumaNode, check_cpu_unknown>, true},
  });
}();

}  // namespace

std::span<const LintRule> lint_numa_rules() { return kNumaRules; }

}  // namespace gxp

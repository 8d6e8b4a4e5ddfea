// NVLinks and xGMI links: each GPU lists its own ends.

#include <array>
#include <map>

#include "lib/base/text/plural.h"
#include "lib/tools/topology/check/lint_rules.h"

namespace gxp {
namespace {

bool joins_gpus(const CrossLink& link) {
  return link.kind == CrossLinkKind::kNvLink || link.kind == CrossLinkKind::kXgmi;
}

std::string links_of(CrossLinkKind kind, int count) {
  return counted(size_t(count), to_string(kind));
}

struct DirectedLinks {
  int count = 0;
  const CrossLink* first = nullptr;
};

std::map<std::pair<PartId, PartId>, DirectedLinks> between_gpus(const LintSubject& subject) {
  std::map<std::pair<PartId, PartId>, DirectedLinks> links;
  for (const CrossLink& link : subject.host.cross_links()) {
    if (!joins_gpus(link) || link.to == kNoPart || link.to == link.from) continue;
    if (subject.host[link.to].kind != PartKind::kGpu) continue;
    DirectedLinks& there = links[{link.from, link.to}];
    there.count += link.count;
    if (there.first == nullptr) there.first = &link;
  }
  return links;
}

void check_link_to_itself(const LintSubject& subject, const LintReporter& report) {
  for (const CrossLink& link : subject.host.cross_links()) {
    if (joins_gpus(link) && link.to == link.from && link.to != kNoPart)
      report(link.place, "{} from {} to itself", links_of(link.kind, link.count),
             subject.at(link.from).called());
  }
}

// Links to an NVSwitch or a CPU, which need not be in the file, are in order.
void check_link_to_nothing(const LintSubject& subject, const LintReporter& report) {
  for (const CrossLink& link : subject.host.cross_links()) {
    const bool leaves_tree = link.target_class.starts_with("0x0680");
    if (!joins_gpus(link) || link.to != kNoPart || leaves_tree) continue;
    const std::string from = subject.at(link.from).called();
    if (link.target.empty()) {
      report(link.place, "{} of {} has no target", to_string(link.kind), from);
    } else {
      report(link.place, "{} of {} leads to {}, which is not in the file", to_string(link.kind),
             from, link.target.substr(0, kShown));
    }
  }
}

void check_link_class(const LintSubject& subject, const LintReporter& report) {
  for (const CrossLink& link : subject.host.cross_links()) {
    if (joins_gpus(link) && link.target_class.empty())
      report(link.place, "{} of {} to {} has no tclass", to_string(link.kind),
             subject.at(link.from).called(), link.target.substr(0, kShown));
  }
}

void check_link_one_way(const LintSubject& subject, const LintReporter& report) {
  const auto links = between_gpus(subject);
  for (const auto& [pair, there] : links) {
    if (!links.contains({pair.second, pair.first}))
      report(there.first->place, "{} lists {} to {}, which lists none back",
             subject.at(pair.first).called(), links_of(there.first->kind, there.count),
             subject.at(pair.second).called());
  }
}

void check_link_counts(const LintSubject& subject, const LintReporter& report) {
  const auto links = between_gpus(subject);
  for (const auto& [pair, there] : links) {
    const auto back = links.find({pair.second, pair.first});
    if (back == links.end() || pair.first > pair.second || back->second.count == there.count)
      continue;
    report(there.first->place, "{} lists {} to {}, which lists {} back",
           subject.at(pair.first).called(), links_of(there.first->kind, there.count),
           subject.at(pair.second).called(), back->second.count);
  }
}

// A GPU with fewer links than the others have; where the most frequent number is not the largest,
// GPUs differ by design.
void check_link_missing(const LintSubject& subject, const LintReporter& report) {
  std::map<PartId, int> counts;
  for (const PartId id : subject.host.all_of(PartKind::kGpu)) counts[id] = 0;
  for (const CrossLink& link : subject.host.cross_links()) {
    if (joins_gpus(link) && counts.contains(link.from)) counts[link.from] += link.count;
  }
  std::map<int, int> gpus_with;
  for (const auto& [id, count] : counts) ++gpus_with[count];
  if (gpus_with.size() < 2) return;
  const auto [most, often] = *gpus_with.rbegin();
  if (2 * size_t(often) <= counts.size()) return;
  for (const auto& [id, count] : counts) {
    if (count < most)
      report(subject.host[id].place, "{} has {} links to GPUs and switches, {} of {} GPUs have {}",
             subject.at(id).called(), count, often, counts.size(), most);
  }
}

constexpr auto kLinksRules = [] {
  using enum Severity;
  return std::to_array<LintRule>({
      {"nvlink-to-itself", kError, "links of a GPU that lead to itself",
       "they connect nothing; traffic to the intended peer goes over PCIe",
       "write the peer's bus id into target", check_link_to_itself},
      {"nvlink-to-nothing", kError, "links to a device that is not in the file",
       "NCCL drops them silently", "write the peer's bus id, as in its <pci>",
       check_link_to_nothing},
      {"nvlink-class-missing", kError, "a link without the class of its target",
       "NCCL stops at an <nvlink> without tclass",
       "add tclass: the peer's class for a GPU, 0x068000 for an NVSwitch", check_link_class, true},
      {"nvlink-one-way", kError, "links that only one end lists",
       "NCCL then has a path in one direction only, and rings avoid it", "list them at both ends",
       check_link_one_way},
      {"nvlink-counts-differ", kError, "links that the two ends list in different numbers",
       "NCCL plans with different bandwidths each way", "list the same number at both ends",
       check_link_counts},
      {"nvlink-fewer", kWarning, "a GPU with fewer links than the others have",
       "rings run at the speed of the GPU with the fewest (nccl issue 1182)",
       "look at nvidia-smi nvlink -s on the machine for links that are down", check_link_missing},
  });
}();

}  // namespace

std::span<const LintRule> lint_links_rules() { return kLinksRules; }

}  // namespace gxp

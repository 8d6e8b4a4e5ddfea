// The checks behind lint's rules. One more rule is a function and a row in one of the lint_*.cc.
// The rules follow NCCL 2.30, src/graph/xml.cc and topo.cc.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/tools/topology/check/lint.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {

// A node of an XML file (comments are left out), with values as written.
struct LintNode {
  // kText: text that is not only blanks. kOther: <?...> and <!...>. kBrokenEnd: a broken end tag.
  enum class Kind { kElement, kText, kOther, kBrokenEnd };
  Kind kind = Kind::kOther;
  std::string_view text{};  // an element's name
  size_t offset = 0;        // in the file
  size_t attributes = 0;
  size_t longest_value = 0;
  size_t child = 0;        // its number among the children of its element, from 1
  bool is_broken = false;  // a tag over lines, or with tabs
};
std::vector<LintNode> read_nodes(std::string_view text);

constexpr size_t kShown = 40;  // bytes of a text of the file, in findings

// One part of the host that is checked.
struct LintPart {
  const HostTree& host;
  const Part& part;
  const std::string& name;
  [[nodiscard]] SourceLocation place() const { return part.place; }
  [[nodiscard]] std::string called() const;  // "GPU0 (0000:1b:00.0)"
};

// A host, and the file that it was read from, if that is NCCL's XML.
struct LintSubject {
  const HostTree& host;
  std::string_view text{};
  std::vector<LintNode> nodes = read_nodes(text);
  std::vector<std::string> names = names_of_parts(host);
  [[nodiscard]] LintPart at(PartId id) const { return {host, host[id], names[id]}; }
};

// Adds findings of one rule, each at a place in the source.
class LintReporter {
 public:
  LintReporter(const LintRule& rule, std::vector<LintFinding>& findings)
      : rule_(rule), findings_(findings) {}
  template <class... Args>
  void operator()(SourceLocation place, fmt::format_string<Args...> what, Args&&... args) const {
    findings_.push_back({&rule_, place, fmt::format(what, std::forward<Args>(args)...)});
  }

 private:
  const LintRule& rule_;
  std::vector<LintFinding>& findings_;
};

// Make a rule's check from the check of one part.
using PartCheck = void (*)(const LintPart& one, const LintReporter& report);
template <PartCheck kCheck>
void each_part(const LintSubject& subject, const LintReporter& report) {
  for (PartId id = 0; id < subject.host.parts().size(); ++id) kCheck(subject.at(id), report);
}
template <PartKind kKind, PartCheck kCheck>
void each(const LintSubject& subject, const LintReporter& report) {
  for (const PartId id : subject.host.all_of(kKind)) kCheck(subject.at(id), report);
}

// Reports the second and further parts of a host with one key. `key_of` returns the key's text and
// a second text that must be equal too; nothing if the part has no key.
template <class KeyOf>
void report_duplicates(const LintSubject& subject, std::span<const PartId> parts,
                       std::string_view what, const KeyOf& key_of, const LintReporter& report,
                       bool per_host = true) {
  std::map<std::tuple<std::string_view, std::string, std::string>, int> lines;
  for (const PartId id : parts) {
    const std::optional<std::pair<std::string, std::string>> key = key_of(subject.host[id]);
    if (!key) continue;
    const SourceLocation place = subject.host[id].place;
    const std::string_view host = per_host ? host_hash_of(subject.host, id) : "";
    const auto [first, is_new] = lines.try_emplace({host, key->first, key->second}, place.line);
    if (!is_new)
      report(place, "{} {} occurs twice, first in line {}", what, key->first, first->second);
  }
}

// The rules of lint_tags.cc and so on, in the order in which they are checked.
using LintRules = std::span<const LintRule>();
LintRules lint_tags_rules, lint_numa_rules, lint_pcie_rules;
LintRules lint_speed_rules, lint_devices_rules, lint_links_rules;

}  // namespace gxp

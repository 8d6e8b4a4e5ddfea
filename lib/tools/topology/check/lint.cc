#include "lib/tools/topology/check/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/plural.h"
#include "lib/tools/topology/check/lint_rules.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/xml_text.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 3> kSeverities = {"error", "warning", "note"};

constexpr LintRule kUnreadable = {
    "unreadable", Severity::kError, "the file is not a topology",
    "no tool can read it, or an attribute that must be a number is not one",
    "correct the element that the message names"};

void add_findings(const LintSubject& subject, std::vector<LintFinding>& findings) {
  for (const LintRule& rule : lint_rules()) {
    const bool applies = !rule.of_file || !subject.host.dialect.empty();
    if (rule.check != nullptr && applies) rule.check(subject, LintReporter(rule, findings));
  }
}

void sort_by_place(std::vector<LintFinding>& findings) {
  std::ranges::stable_sort(findings, {}, [](const LintFinding& one) {
    return std::pair(one.place.line, one.place.column);
  });
}

std::string to_line(const LintFinding& finding, const std::string& name) {
  return fmt::format("{}: {}: {} [{}]\n", at_place(name, finding.place),
                     to_string(finding.rule->severity), finding.what, finding.rule->id);
}

}  // namespace

std::string_view to_string(Severity severity) { return kSeverities[size_t(severity)]; }

std::span<const LintRule> lint_rules() {
  static const std::vector<LintRule> kRules = [] {
    std::vector<LintRule> all = {kUnreadable};
    for (const auto rules : {lint_tags_rules(), lint_numa_rules(), lint_pcie_rules(),
                             lint_speed_rules(), lint_devices_rules(), lint_links_rules()})
      all.insert(all.end(), rules.begin(), rules.end());
    return all;
  }();
  return kRules;
}

std::vector<LintFinding> lint_host(const HostTree& host) {
  std::vector<LintFinding> findings;
  add_findings({host}, findings);
  sort_by_place(findings);
  return findings;
}

std::vector<LintFinding> lint_nccl_xml(std::string_view text, const std::string& name) {
  HostTree host;
  std::vector<LintFinding> findings;
  std::optional<LintFinding> refusal;
  try {
    host = read_nccl_xml(text, name);
  } catch (const XmlError& error) {
    refusal = {&kUnreadable, error.place, error.why};
  } catch (const Error& error) {
    refusal = {&kUnreadable, {}, error.what()};
  }
  add_findings({host, text}, findings);
  if (refusal) findings.push_back(*refusal);
  sort_by_place(findings);
  return findings;
}

size_t count_of(std::span<const LintFinding> findings, Severity severity) {
  return size_t(std::ranges::count_if(
      findings, [&](const LintFinding& one) { return one.rule->severity == severity; }));
}

std::string lint_text(std::span<const LintFinding> findings, const std::string& name) {
  std::string text;
  std::set<std::string_view> explained;
  for (const LintFinding& finding : findings) {
    text += to_line(finding, name);
    if (!explained.insert(finding.rule->id).second) continue;
    text += fmt::format("    why: {}\n    fix: {}\n", finding.rule->why, finding.rule->fix);
  }
  using enum Severity;
  return text + fmt::format("{}: {}, {}, {}\n", name, counted(count_of(findings, kError), "error"),
                            counted(count_of(findings, kWarning), "warning"),
                            counted(count_of(findings, kNote), "note"));
}

Report lint_report(std::span<const LintFinding> findings, const std::string& name) {
  using enum Severity;
  Report report{.schema = "gxp.topo.lint/1"};
  report.facts = {{{"file"}, name},
                  {{"errors"}, int64_t(count_of(findings, kError))},
                  {{"warnings"}, int64_t(count_of(findings, kWarning))},
                  {{"notes"}, int64_t(count_of(findings, kNote))}};
  Table& table = report.add_table(
      "findings", {{"rule"}, {"severity"}, {"line"}, {"column"}, {"what"}, {"why"}, {"fix"}});
  for (const LintFinding& one : findings) {
    table.add_row(one.rule->id, to_string(one.rule->severity), one.place.line, one.place.column,
                  one.what, one.rule->why, one.rule->fix);
  }
  return report;
}

Report lint_rules_report() {
  Report report{.schema = "gxp.topo.lint-rules/1"};
  Table& table = report.add_table("rules", {{"id"}, {"severity"}, {"what"}, {"why"}, {"fix"}});
  for (const LintRule& rule : lint_rules()) {
    table.add_row(rule.id, to_string(rule.severity), rule.what, rule.why, rule.fix);
  }
  return report;
}

}  // namespace gxp

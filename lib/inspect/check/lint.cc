#include "lib/inspect/check/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/inspect/check/lint_rules.h"
#include "lib/topo/read/nccl_xml.h"
#include "lib/topo/read/xml_text.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 3> kSeverities = {"error", "warning", "note"};

constexpr LintRow kUnreadable = {
    {"unreadable", Severity::kError, "the file is no topology",
     "no tool can read it, or an attribute that must be a number is none",
     "correct what the message names"}};

std::span<const LintRow> lint_rows() {
  static const std::vector<LintRow> kRows = [] {
    std::vector<LintRow> all = {kUnreadable};
    for (const std::span<const LintRow> rows :
         {lint_tags_rows(), lint_numa_rows(), lint_pcie_rows(), lint_speed_rows(),
          lint_devices_rows(), lint_links_rows()})
      all.insert(all.end(), rows.begin(), rows.end());
    return all;
  }();
  return kRows;
}

void add_host_findings(const HostTree& host, std::vector<LintFinding>& findings) {
  const LintSubject subject(host);
  for (const LintRow& row : lint_rows()) {
    if (row.host == nullptr || (row.of_file && host.dialect.empty())) continue;
    row.host(subject, [&](SourcePlace place, std::string what) {
      findings.push_back({&row.rule, place, std::move(what)});
    });
  }
}

void sort_by_place(std::vector<LintFinding>& findings) {
  std::ranges::stable_sort(findings, {}, [](const LintFinding& one) {
    return std::pair(one.place.line, one.place.column);
  });
}

std::string to_line(const LintFinding& finding, const std::string& name) {
  const std::string at = finding.place.line == 0 ? name
                                                 : fmt::format("{}:{}:{}", name, finding.place.line,
                                                               finding.place.column);
  return fmt::format("{}: {}: {} [{}]\n", at, to_string(finding.rule->severity), finding.what,
                     finding.rule->id);
}

std::string counted(size_t count, Severity severity) {
  return fmt::format("{} {}{}", count, to_string(severity), count == 1 ? "" : "s");
}

}  // namespace

std::string_view to_string(Severity severity) { return kSeverities[size_t(severity)]; }

std::vector<LintRule> lint_rules() {
  std::vector<LintRule> rules;
  for (const LintRow& row : lint_rows()) rules.push_back(row.rule);
  return rules;
}

std::vector<LintFinding> lint_host(const HostTree& host) {
  std::vector<LintFinding> findings;
  add_host_findings(host, findings);
  sort_by_place(findings);
  return findings;
}

std::vector<LintFinding> lint_nccl_xml(std::string_view text, const std::string& name) {
  std::vector<LintFinding> findings;
  const std::vector<XmlTag> tags = scan_tags(text);
  for (const LintRow& row : lint_rows()) {
    if (row.tags == nullptr) continue;
    row.tags(tags, [&](SourcePlace place, std::string what) {
      findings.push_back({&row.rule, place, std::move(what)});
    });
  }
  try {
    add_host_findings(read_nccl_xml(text, name), findings);
  } catch (const XmlError& error) {
    findings.push_back({&kUnreadable.rule, error.place, error.why});
  } catch (const Error& error) {
    findings.push_back({&kUnreadable.rule, {}, error.what()});
  }
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
  return text + fmt::format("{}: {}, {}, {}\n", name, counted(count_of(findings, kError), kError),
                            counted(count_of(findings, kWarning), kWarning),
                            counted(count_of(findings, kNote), kNote));
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
    table.add_row({std::string(one.rule->id), std::string(to_string(one.rule->severity)),
                   int64_t{one.place.line}, int64_t{one.place.column}, one.what,
                   std::string(one.rule->why), std::string(one.rule->fix)});
  }
  return report;
}

Report lint_rules_report() {
  Report report{.schema = "gxp.topo.lint-rules/1"};
  Table& table = report.add_table("rules", {{"id"}, {"severity"}, {"what"}, {"why"}, {"fix"}});
  for (const LintRow& row : lint_rows()) {
    const LintRule& rule = row.rule;
    table.add_row({std::string(rule.id), std::string(to_string(rule.severity)),
                   std::string(rule.what), std::string(rule.why), std::string(rule.fix)});
  }
  return report;
}

}  // namespace gxp

// Errors in a topology file, or in what a host reports: findings with their place, why they matter
// and what to do, judged by NCCL's reader and search.
//
// Severities, as compilers have them:
//   error    NCCL refuses the file, or plans for hardware that cannot be as it says
//   warning  NCCL guesses, ignores a device, or the host is built to be slow
//   note     unusual, and harmless or wanted
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/report/report.h"
#include "lib/topo/model/source_text.h"

namespace gxp {

class HostTree;

enum class Severity : uint8_t { kError, kWarning, kNote };
std::string_view to_string(Severity severity);

struct LintSubject;
class LintReporter;

struct LintRule {
  std::string_view id;  // "nvlink-to-itself"
  Severity severity;
  std::string_view what;
  std::string_view why;
  std::string_view fix;
  void (*check)(const LintSubject& subject,
                const LintReporter& report) = nullptr;  // none: the reader's own
  bool of_file = false;  // requires facts that NCCL's XML must have, and other sources need not
};

struct LintFinding {
  const LintRule* rule = nullptr;
  SourceLocation place{};
  std::string what{};  // here: with names and numbers
};

// All rules, in the order in which they are checked.
std::span<const LintRule> lint_rules();

// Sorted by place, then by rule. A text that cannot be read is a finding as well.
std::vector<LintFinding> lint_nccl_xml(std::string_view text, const std::string& name);
std::vector<LintFinding> lint_host(const HostTree& host);

size_t count_of(std::span<const LintFinding> findings, Severity severity);

// "topo.xml:4:7: error: ... [nvlink-to-itself]", with why and remedy after the first of each rule,
// and a line that counts. `name` is the file's.
std::string lint_text(std::span<const LintFinding> findings, const std::string& name);
Report lint_report(std::span<const LintFinding> findings, const std::string& name);
Report lint_rules_report();

}  // namespace gxp

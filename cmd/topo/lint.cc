// gxp topo lint: what is wrong with a topology file, with file, line and column.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/result_file.h"
#include "cmd/topo/topo.h"
#include "lib/base/error.h"
#include "lib/tools/topology/check/lint.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"

namespace gxp {
namespace {

struct LintOptions {
  std::string file;
  Format format = Format::kText;
  bool strict = false;
  bool rules = false;
};

// NCCL's XML also has rules for its text; of other sources the hosts are checked.
std::vector<LintFinding> lint_source(const SourceInput& input) {
  if (is_nccl_xml(input)) return lint_nccl_xml(input.text, input.name);
  std::vector<LintFinding> findings;
  const Topology topology = load_topology(input);
  for (const auto& tree : topology.trees) {
    const std::vector<LintFinding> of_tree = lint_host(*tree);
    findings.insert(findings.end(), of_tree.begin(), of_tree.end());
  }
  return findings;
}

int run(const LintOptions& options) {
  if (options.rules) {
    print(lint_rules_report(), options.format);
    return kExitOk;
  }
  if (options.file.empty()) fail(ErrorKind::kUsage, "topo lint: name a FILE, or --rules");
  const SourceInput input = look_at_source(options.file);
  const std::vector<LintFinding> findings = lint_source(input);
  if (options.format == Format::kText) {
    write_stdout(lint_text(findings, input.name));
  } else {
    print(lint_report(findings, input.name), options.format);
  }
  const bool failed = count_of(findings, Severity::kError) > 0 ||
                      (options.strict && count_of(findings, Severity::kWarning) > 0);
  return failed ? exit_code(ErrorKind::kMismatch) : kExitOk;
}

}  // namespace

std::function<int()> define_topo_lint(CLI::App& app) {
  auto options = std::make_shared<LintOptions>();  // kept alive by the returned action
  app.add_option("FILE", options->file, "Topology file in any supported format; - for stdin");
  add_format_option(app, options->format);
  app.add_flag("--strict", options->strict, "Fail on warnings too");
  app.add_flag("--rules", options->rules,
               "List the rules: what each finds, why it matters, and the remedy");
  return [options] { return run(*options); };
}

}  // namespace gxp

#include "cmd/train/other_run.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <vector>

#include "cmd/exit_codes.h"
#include "lib/base/error.h"
#include "lib/base/text/visible_text.h"
#include "lib/job/failure/explain_failure.h"
#include "lib/job/status/status_socket.h"
#include "lib/train/run_directories.h"

namespace gxp {
namespace {

// The option, and --format, are all that the command line has. kUsage.
void check_only(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && option->get_name() != name && option->get_name() != "--format")
      fail(ErrorKind::kUsage, "{}: it trains nothing, so {} has no effect; leave it out", name,
           option->get_name());
}

int show_status(const std::string& directory, Format format) {
  std::error_code unseen;
  const bool is_there =
      std::filesystem::status(directory, unseen).type() != std::filesystem::file_type::not_found;
  const auto text = is_there ? ask_status(directory, format) : std::nullopt;
  if (text) {
    print_now(*text);
    return kExitOk;
  }
  const std::string holder = is_there ? holder_of(directory) : "";
  if (holder.empty())
    fail(ErrorKind::kIo,
         "ask for the status of the run in {}: {}; give the checkpoint.dir of a run that trains "
         "now, or its train.run_dir if it writes no checkpoints",
         directory, is_there ? "no run is there" : "there is no such directory");
  fail(ErrorKind::kIo,
       "ask for the status of the run in {}: {} holds the directory but does not answer here; if "
       "that is another host, ask there; if train.run_dir is the directory, give checkpoint.dir",
       directory, visible(holder));
}

// The newest failure that the run has left: that of its last attempt, or the one before.
int show_failure(const std::string& directory, Format format) {
  const std::string newest = failure_directory(directory);
  const std::string old = newest + ".old";
  const bool has_gone_on = !holds_failure(newest) && holds_failure(old);
  const std::vector<RankFailure> failures = read_failures(has_gone_on ? old : newest);
  Report report = explain_failure(failures, format != Format::kText);
  if (has_gone_on)
    report.facts.push_back({{"since", "since then"}, "the run has been started again"});
  print(report, format);
  return kExitOk;
}

}  // namespace

void add_other_run_options(CLI::App& app, OtherRunRequest& request) {
  app.add_option("--status", request.status_dir,
                 "Show how the run is doing whose checkpoint.dir, or else run_dir, is DIR")
      ->type_name("DIR");
  app.add_option("--explain-failure", request.failure_dir,
                 "Explain how and where the run in DIR, named likewise, has failed")
      ->type_name("DIR");
}

std::optional<int> show_other_run(const OtherRunRequest& request, const CLI::App& app,
                                  Format format) {
  if (!request.failure_dir.empty()) {
    check_only(app, "--explain-failure");
    return show_failure(request.failure_dir, format);
  }
  if (request.status_dir.empty()) return std::nullopt;
  check_only(app, "--status");
  return show_status(request.status_dir, format);
}

}  // namespace gxp

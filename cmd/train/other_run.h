// The options of `gxp train` that show another run and train nothing.
#pragma once

#include <optional>
#include <string>

#include "lib/report/report.h"

namespace CLI {
class App;
}  // namespace CLI

namespace gxp {

struct OtherRunRequest {
  std::string status_dir;   // "": not asked for
  std::string failure_dir;  // likewise
};

void add_other_run_options(CLI::App& app, OtherRunRequest& request);

// The exit code, if the command line asks for another run. Errors: kUsage: other options are given as
// well; kIo: there is no run, or it is on another host, or no
// failure; kCorrupt: as read_failures(); kPeer: its rank 0 does not answer within 2 s.
std::optional<int> show_other_run(const OtherRunRequest& request, const CLI::App& app,
                                  Format format);

}  // namespace gxp

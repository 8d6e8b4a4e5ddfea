// The options of `gxp train` that read and write the configurations of other launchers. What carries
// them out is in lib/tools (exchange.cc), so a build without tools says that it lacks it
// (no_tools.cc).
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gxp {

struct TrainOptions;

struct ExchangeOptions {
  std::string import_path;             // "": none
  std::vector<std::string> arguments;  // "learning_rate=3e-5"
  std::string export_to;               // "deepspeed", or ""
  std::string output;                  // "": stdout
  [[nodiscard]] bool is_given() const { return !import_path.empty() || !export_to.empty(); }
};

// `run_file` is the option that --import takes the place of.
void add_exchange_options(CLI::App& app, ExchangeOptions& options, CLI::Option* run_file);

// Writes the run file or the DeepSpeed JSON, and a report of every key; gives the exit code. kConfig:
// something is refused, and nothing is written but the report. kUnavailable: a build without tools.
int exchange(const TrainOptions& options);

}  // namespace gxp

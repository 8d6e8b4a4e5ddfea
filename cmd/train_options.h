// The options of `gxp train`, and what they make of a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/exchange_options.h"
#include "cmd/generation_options.h"
#include "cmd/launch/launch_script.h"
#include "cmd/train/other_run.h"
#include "cmd/train_times.h"
#include "lib/base/environment.h"
#include "lib/config/run_config.h"
#include "lib/data/data_files.h"
#include "lib/job/join.h"
#include "lib/program/run_plan.h"
#include "lib/report/report.h"
#include "lib/train/model_view.h"
#include "lib/train/run.h"

namespace gxp {

struct TrainOptions {
  std::string config_path;
  std::vector<std::string> sets;
  LaunchRequest launch;
  RunOptions run;
  bool evaluate = false;
  int shown_documents = 0;
  GenerationOptions generation;
  TimeOptions times;
  bool print_config = false;
  OtherRunRequest other_run;
  ExchangeOptions exchange;
  std::optional<ScriptKind> print_launch;
  Format format = Format::kText;

  // Whether the run makes no steps.
  [[nodiscard]] bool only_looks(const RunConfig& config) const {
    return evaluate || config.data.train.empty();
  }
  [[nodiscard]] bool reads_files(const RunConfig& config) const {
    return evaluate || !config.data.train.empty();
  }
  [[nodiscard]] DataPurpose purpose() const {
    return {.needed = shown_documents > 0 ? FilesNeeded::kNone
                      : evaluate          ? FilesNeeded::kOfValidation
                                          : FilesNeeded::kAll,
            .writes_chats = generation.is_chat};
  }
  [[nodiscard]] auto planner(const RunConfig& config) const {
    return only_looks(config) ? plan_evaluation : plan_run;
  }
  [[nodiscard]] bool generates_text() const { return generation.prompt_ids.empty(); }
  [[nodiscard]] ViewRequest view() const {
    return {evaluate, run.generation, run.resume, run.settings};
  }
};

// restart_options.cc: --max-restarts, by which a run goes on after a rank was lost.
void add_restart_option(CLI::App& app, LaunchRequest& launch);

// Checks the option against the run and the other options, and completes the request to start
// ranks: without a launcher, one rank is started to be watched. Nothing without the option. kUsage.
void prepare_restarts(TrainOptions& options, const RunConfig& run, const Environment& environment);

// In a rank: connects the run to the launcher that may start it again. Nothing without one. kConfig:
// as JobProgress::inherited().
void connect_to_launcher(TrainOptions& options, const Environment& environment);

}  // namespace gxp

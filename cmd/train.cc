// gxp train: trains a model on every rank that the launcher started, or starts the ranks itself.
#include <CLI/CLI.hpp>
#include <climits>
#include <memory>
#include <string>
#include <vector>

#include "cmd/choice_option.h"
#include "cmd/command.h"
#include "cmd/exit_codes.h"
#include "cmd/memory_limit.h"
#include "cmd/options.h"
#include "cmd/show_data.h"
#include "cmd/stop_signal.h"
#include "cmd/train_options.h"
#include "cmd/train_rank.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/config/global_batch.h"
#include "lib/config/load.h"
#include "lib/config/print.h"
#include "lib/data/data_files.h"
#include "lib/job/early_end.h"
#include "lib/train/run_data.h"

namespace gxp {
namespace {

// What load_config() cannot know is wrong.
void check_usable(const TrainOptions& options, const RunConfig& run) {
  if (options.run.resume && run.checkpoint.dir.empty()) {
    fail(ErrorKind::kUsage,
         "--resume: checkpoint.dir is not set, so there is nothing to resume from");
  }
  if (options.run.resume && options.run.overwrite) {
    fail(ErrorKind::kUsage,
         "--overwrite: it would remove the checkpoint that --resume continues from; give one of "
         "them");
  }
  if (options.only_looks(run) && (options.run.overwrite || !options.run.metrics_path.empty())) {
    fail(ErrorKind::kUsage, "{}: there are no steps without training",
         options.run.overwrite ? "--overwrite" : "--metrics");
  }
  if (options.evaluate && !has_validation(run))
    fail(ErrorKind::kUsage,
         "--evaluate: the run has no validation data; name files in data.valid, or set "
         "data.validation_split");
}

// What is generated, and in text also how it is printed as it comes.
void set_generation(TrainOptions& options, const RunConfig& run) {
  GenerationRequest& request = options.run.generation;
  request = make_generation(options.generation, run);
  if (options.format != Format::kText) return;
  // Shared by copies of the function.
  const auto& tokenizer = options.generation.tokenizer;
  const auto stream = std::make_shared<TokenStream>(
      tokenizer && options.generates_text() ? tokenizer->decoder() : nullptr);
  request.emit = [stream](int32_t token) { stream->put(token); };
  request.finish = [stream] { stream->finish(); };
}

void print_launch(const TrainOptions& options, const RunConfig& run) {
  const LaunchRequest& launch = options.launch;
  const std::vector<std::string_view> where = {"--print-launch", "--nproc",  "--nnodes",
                                               "--node-rank",    "--spares", "--master"};
  fmt::print("{}", launch_script(*options.print_launch,
                                 {.argv = without_options(own_argv(), where),
                                  .nproc = std::max(1, launch.nproc),
                                  .nnodes = launch.all_nodes(),
                                  .min_nnodes = launch.min_nnodes,
                                  .spares = launch.spares,
                                  .max_restarts = launch.max_restarts,
                                  .uses_gpus = run.train.device == TrainDevice::kCuda,
                                  .master = launch.master}));
}

int run_placed(TrainOptions& options, const Environment& environment) {
  if (options.exchange.is_given()) return exchange(options);
  const bool trains = !options.evaluate && options.generation.count == 0;
  LoadedConfig config = load_config(options.config_path, options.sets, environment, trains);
  if (options.print_config) {
    fmt::print("{}", print_config(config));
    return kExitOk;
  }
  if (options.shown_documents > 0) {
    const bool has_model = config.origins.at("model.vocab_size").kind != Origin::Kind::kDefault;
    show_data(with_files(config.run, options.purpose()), has_model,
              uint64_t(options.shown_documents), options.format);
    return kExitOk;
  }
  check_usable(options, config.run);
  prepare_restarts(options, config.run, environment);
  if (options.print_launch) {
    print_launch(options, config.run);
    return kExitOk;
  }
  if (options.reads_files(config.run)) config.run = with_files(config.run, options.purpose());
  options.run.resolved_settings = print_config(config);
  if (!options.only_looks(config.run))
    config.run = with_global_batch(config.run, world_size_of(options.launch, environment));
  const JobSettings job{.comm = config.run.comm,
                        .layout_invariant = config.run.train.deterministic != Determinism::kOff,
                        .configuration = flatten(config.run),
                        .chooses_by_gpus = true};
  check_job(job, environment);
  const PlannedRanks planned = planned_ranks(options.launch, environment);
  check_times(options.times, settings_on(config.run, planned), planned.world_size());
  check_memory_limit(config.run, planned, environment,
                     {.bytes = config.run.train.device_memory_bytes,
                      .source = "train.device_memory_bytes",
                      .on_gpu = config.run.train.device == TrainDevice::kCuda,
                      .plan = options.planner(config.run)});
  set_generation(options, config.run);
  // Before there are ranks, which would wait, and print an error each.
  if (options.launch.nproc > 0 && trains) open_data(config.run);
  if (const auto launched = launch_ranks(options.launch, environment, job.comm)) return *launched;
  options.run.settings = job.configuration;
  options.run.stop_signal = stop_signal;
  connect_to_launcher(options, environment);
  return train_on_rank(options, config.run, job, planned, environment);
}

int run(TrainOptions& options) {
  if (options.config_path.empty() && options.exchange.import_path.empty())
    fail(ErrorKind::kUsage, "RUN.toml is required");
  const Environment environment = process_environment();
  place_host(options.launch, environment);
  return telling_others(options.launch, environment,
                        [&] { return run_placed(options, environment); });
}

}  // namespace

std::function<int()> define_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();  // kept alive by the returned action
  CLI::Option* run_file =
      app.add_option("RUN.toml", options->config_path, "Run file, see gxp.toml(5)");
  add_set_option(app, options->sets);
  app.add_flag("--print-config", options->print_config,
               "Print every setting and where its value comes from, then exit");
  add_launch_options(app, options->launch);
  add_restart_option(app, options->launch);
  app.add_flag("--resume", options->run.resume,
               "Continue from the newest checkpoint in checkpoint.dir");
  app.add_flag("--overwrite", options->run.overwrite,
               "Replace the checkpoints and metrics of an earlier run");
  add_other_run_options(app, options->other_run);
  app.add_option("--metrics", options->run.metrics_path,
                 "Also write the metrics of each step to FILE")
      ->type_name("FILE");
  app.add_flag("--evaluate", options->evaluate,
               "Compute the loss of all of data.valid, with the weights of model.init or, with "
               "--resume, of the newest checkpoint, instead of training");
  add_number_option(
      app, "--show-data", options->shown_documents, 0, INT_MAX,
      "Print documents of data.train instead of training. The first N, as the model gets them: "
      "text, token ids, and which of them are trained")
      ->type_name("N");
  add_generation_options(app, options->generation);
  add_time_options(app, options->times);
  add_exchange_options(app, options->exchange, run_file);
  add_under(app, kStartingRanks, [&] {
    add_choice_option(app, "--print-launch", options->print_launch, kScriptKindNames,
                      "Instead of training, print what starts this command on --nnodes hosts: a "
                      "batch script, a manifest for kubectl, or a script for ssh or mpirun");
  });
  add_format_option(app, options->format);
  return [options, &app] {
    if (const auto shown = show_other_run(options->other_run, app, options->format)) return *shown;
    return run(*options);
  };
}

}  // namespace gxp

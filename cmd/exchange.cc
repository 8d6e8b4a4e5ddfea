// gxp train --import and --export.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <optional>

#include "cmd/exchange_options.h"
#include "cmd/exit_codes.h"
#include "cmd/result_file.h"
#include "cmd/train_options.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/visible_text.h"
#include "lib/config/load.h"
#include "lib/tools/imports/export_deepspeed.h"
#include "lib/tools/imports/run_file.h"

namespace gxp {
namespace {

std::map<std::string, std::string> split_arguments(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> arguments;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      fail(ErrorKind::kUsage, "--import-arg {}: must be NAME=VALUE", text);
    arguments[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return arguments;
}

// The width of the model that --set describes, if it does.
std::optional<int64_t> hidden_size(const std::vector<std::string>& sets) {
  std::vector<std::string> of_model;
  for (const std::string& set : sets) {
    if (set.starts_with("model.")) of_model.push_back(set);
  }
  if (of_model.empty()) return std::nullopt;
  const LoadedConfig loaded = load_config("", of_model, {}, false);
  const bool is_given = loaded.origins.at("model.hidden").kind != Origin::Kind::kDefault;
  return is_given ? std::optional<int64_t>(loaded.run.model.hidden) : std::nullopt;
}

// Says how the import went: on stdout, unless that is for the run file.
void report_import(const ImportResult& result, const TrainOptions& options,
                   const std::string& run_file, const std::vector<std::string>& problems) {
  const bool to_file = !options.exchange.output.empty();
  if (options.format == Format::kJson) {
    write_stdout(to_import_json(result, run_file, problems));
  } else if (options.format == Format::kCsv || to_file || !result.imports()) {
    print(to_report(result), options.format);
  } else {
    fmt::print(stderr, "{}", visible(to_text(to_report(result)), "\n\t"));
    write_stdout(run_file);
  }
}

int import_configuration(const TrainOptions& options) {
  const std::string& output = options.exchange.output;
  const std::string& path = options.exchange.import_path;
  check_writable(output);
  const ImportResult result = import_file({.path = path,
                                           .ranks = options.launch.nproc * options.launch.nnodes,
                                           .arguments = split_arguments(options.exchange.arguments),
                                           .hidden_size = hidden_size(options.sets)});
  const std::string name = output.empty() ? "run.toml" : output;
  std::string run_file;
  std::vector<std::string> problems;
  if (result.imports()) {
    run_file = to_run_file(result, options.sets);
    problems = remaining_problems(run_file, name);
    if (!output.empty()) write_file(output, run_file);
  }
  report_import(result, options, run_file, problems);
  if (!result.imports())
    fail(ErrorKind::kConfig, "import {}: {}", path, joined(result.errors, "\n"));
  log_info("import: {}start it with: {}", output.empty() ? "" : "wrote " + output + "; ",
           command_of(result, name));
  for (const std::string& problem : problems) log_warn("import: still to be set: {}", problem);
  return kExitOk;
}

int export_configuration(const TrainOptions& options) {
  const std::string& output = options.exchange.output;
  check_writable(output);
  const LoadedConfig config =
      load_config(options.config_path, options.sets, process_environment(), false);
  const DeepSpeedExport made = export_deepspeed(config.run);
  if (!made.refused.empty())
    fail(ErrorKind::kConfig, "export {} to DeepSpeed: {}", options.config_path,
         joined(made.refused, "\n"));
  if (!made.left_out.empty())
    log_info("export: these settings are not DeepSpeed's, but the training program's: {}",
             joined(made.left_out, ", "));
  if (output.empty())
    write_stdout(made.json);
  else
    write_file(output, made.json);
  return kExitOk;
}

}  // namespace

int exchange(const TrainOptions& options) {
  return options.exchange.import_path.empty() ? export_configuration(options)
                                              : import_configuration(options);
}

}  // namespace gxp

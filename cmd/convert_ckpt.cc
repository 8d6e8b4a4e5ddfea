// gxp convert-ckpt: any checkpoint format to any other; shows and verifies checkpoints. One
// tensor's buffer of memory, whatever the size of the model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/command.h"
#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/format.h"
#include "lib/config/strategy.h"

namespace gxp {
namespace {

struct ConvertOptions {
  std::string source;
  std::string target;
  std::string to;
  std::string shard_size = "5GB";
  bool inspect = false;
  bool hash = false;
  bool verify = false;
  bool force = false;
  Format format = Format::kText;
};

void check(const ConvertOptions& options) {
  if (options.target.empty() != options.to.empty())
    fail(ErrorKind::kUsage, "convert-ckpt: OUT and --to belong together");
  if (options.target.empty() && !options.inspect && !options.verify)
    fail(ErrorKind::kUsage,
         "convert-ckpt: nothing to do: give OUT and --to, --inspect or --verify");
  if (options.hash && !options.inspect)
    fail(ErrorKind::kUsage, "convert-ckpt: --hash goes with --inspect");
}

WriteOptions write_options(const ConvertOptions& options) {
  const auto bytes = parse_bytes(options.shard_size);
  if (!bytes || *bytes == 0)
    fail(ErrorKind::kUsage, "convert-ckpt: --shard-size '{}' is no size like 5GB or 512MiB",
         options.shard_size);
  return {.shard_bytes = *bytes, .replace = options.force};
}

void verify(const CheckpointFormat& format, const std::string& path, Report& report) {
  const uint64_t files = format.verify == nullptr ? 0 : format.verify(path);
  if (files == 0)
    log_info("{}: {} records no hashes: headers and sizes are checked, contents are not", path,
             format.name);
  report.facts.push_back({{"verified_files", "files with the recorded hash"}, int64_t(files)});
}

void add_facts(const NamedTensors& tensors, Report& report) {
  const auto add = [&](const char* key, Cell value) {
    report.facts.push_back({{key}, std::move(value)});
  };
  add("format", tensors.format);
  if (tensors.step) add("step", int64_t(*tensors.step));
  if (tensors.samples_consumed) add("samples_consumed", int64_t(*tensors.samples_consumed));
  if (tensors.world_size) add("world_size", int64_t{*tensors.world_size});
  if (!tensors.strategy.empty()) add("strategy", tensors.strategy);
  if (const auto stage = stage_of(tensors.strategy)) add("stage", int64_t{*stage});
}

void add_tensors(const NamedTensors& tensors, bool hash, Report& report) {
  std::vector<Column> columns = {
      {"name"}, {"role"}, {"shape"}, {"dtype"}, {"bytes", "size", Style::kBytes}};
  if (hash) columns.push_back({"sha256"});
  Table& table = report.add_table("tensors", std::move(columns));
  for (const NamedTensor& tensor : tensors.tensors) {
    const TensorInfo& info = tensor.info;
    std::vector<Cell> row = {info.name, std::string(to_string(info.role)),
                             std::vector<int64_t>(info.shape.begin(), info.shape.end()),
                             std::string(to_string(info.dtype)), int64_t(info.bytes())};
    if (hash) row.emplace_back(sha256_hex(tensor));
    table.add_row(std::move(row));
  }
}

int run(const ConvertOptions& options) {
  check(options);
  const WriteOptions writing = write_options(options);
  const CheckpointFormat* target = options.to.empty() ? nullptr : &find_format(options.to);
  const CheckpointFormat& format = format_at(options.source);
  const NamedTensors tensors = format.read(options.source);
  Report report{.schema = "gxp.convert-ckpt/1"};
  add_facts(tensors, report);
  // A damaged source must not become a target that looks sound.
  if (options.verify || (target != nullptr && format.verify != nullptr))
    verify(format, options.source, report);
  if (options.inspect) add_tensors(tensors, options.hash, report);
  if (target != nullptr) {
    write_checkpoint(tensors, *target, options.target, writing);
    report.facts.push_back({{"written"}, options.target});
  }
  print(report, options.format);
  return kExitOk;
}

}  // namespace

std::function<int()> define_convert_ckpt(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();  // kept alive by the returned action
  app.add_option("SRC", options->source,
                 "Checkpoint to read; for a run's checkpoint directory, its newest complete step")
      ->required();
  app.add_option(
      "OUT", options->target,
      "Path to write: a directory; for safetensors also one file NAME.safetensors, for pt "
      "always one file");
  app.add_option("--to", options->to, "Format of OUT")
      ->type_name(fmt::format("{}", fmt::join(format_names(), "|")));
  app.add_option("--shard-size", options->shard_size,
                 "Size limit of each file in a directory of safetensors (5GB, 512MiB)")
      ->type_name("BYTES")
      ->capture_default_str();
  app.add_flag("--inspect", options->inspect, "List the tensors of SRC");
  app.add_flag("--hash", options->hash, "With --inspect: the SHA-256 of each tensor's bytes");
  app.add_flag("--verify", options->verify,
               "Compare all contents of SRC with the hashes recorded when it was written");
  app.add_flag("--force", options->force, "Replace OUT if it is a checkpoint");
  add_format_option(app, options->format);
  return [options] { return run(*options); };
}

}  // namespace gxp

#include "cmd/convert_ckpt/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cmd/choice_option.h"
#include "cmd/options.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

void refuse_if(bool wrong, std::string_view why) {
  if (wrong) fail(ErrorKind::kUsage, "convert-ckpt: {}", why);
}

}  // namespace

void check(const ConvertOptions& options) {
  const bool converts = !options.to.empty();
  refuse_if(options.diff && options.target.empty(),
            "--diff compares two checkpoints: give SRC and OUT");
  refuse_if(options.diff && (converts || options.inspect || options.verify),
            "--diff writes nothing and stands alone: without --to, --inspect and --verify");
  refuse_if(!options.diff && options.target.empty() == converts, "OUT and --to belong together");
  refuse_if(options.target.empty() && !options.inspect && !options.verify,
            "nothing to do: give OUT and --to, --inspect, --verify or --diff");
  refuse_if(options.hash && !options.inspect, "--hash goes with --inspect");
  refuse_if(!converts && options.dtype != CastTo::kStored, "--dtype goes with --to");
  refuse_if(!options.map.empty() && !converts, "--map goes with --to");
  refuse_if(options.step > 0 && !converts, "--step goes with --to");
  refuse_if(options.drop_optimizer && !converts, "--drop-optimizer goes with --to");
  refuse_if(options.dry_run && !converts, "--dry-run goes with --to");
  refuse_if(options.resume && (!converts || options.dry_run),
            "--resume goes with --to, and not with --dry-run");
  refuse_if(options.shards > 0 && !options.max_shard_size.empty(),
            "--shards and --max-shard-size are two ways to say one thing: give one");
}

WriteOptions write_options(const ConvertOptions& options) {
  WriteOptions writing{.replace = options.force,
                       .shards = options.shards,
                       .resume = options.resume,
                       .drop_optimizer = options.drop_optimizer};
  if (options.max_shard_size.empty()) return writing;
  const auto bytes = parse_bytes(options.max_shard_size);
  if (!bytes || *bytes == 0)
    fail(ErrorKind::kUsage, "convert-ckpt: --max-shard-size '{}' is no size like 5GB or 512MiB",
         options.max_shard_size);
  writing.shard_bytes = *bytes;
  return writing;
}

const CheckpointFormat* target_format(const ConvertOptions& options) {
  if (options.to.empty()) return nullptr;
  const CheckpointFormat& format = find_format(options.to);
  const bool in_shards = options.shards > 0 || !options.max_shard_size.empty();
  if (in_shards && !format.takes_shards)
    fail(ErrorKind::kUsage, "convert-ckpt: --shards and --max-shard-size: {} is not written so",
         format.name);
  return &format;
}

void add_convert_options(CLI::App& app, ConvertOptions& options) {
  app.add_option("SRC", options.source,
                 "Checkpoint to read; for a run's checkpoint directory, its newest complete step")
      ->required();
  app.add_option("OUT", options.target,
                 "Path to write: a directory; for safetensors also one file NAME.safetensors, for "
                 "pt, gguf and llmc "
                 "always one file; with --diff, the checkpoint to compare with");
  app.add_option("--to", options.to, "Format of OUT")
      ->type_name(fmt::format("{}", fmt::join(format_names(), "|")));
  add_choice_option(app, "--dtype", options.dtype, kCastNames,
                    "Type to which weights of another floating-point type are rounded");
  app.add_option(
         "--map", options.map,
         "Rules in TOML that rename, reorder and drop tensors, see Renaming in gxp-convert-ckpt(1)")
      ->type_name("FILE");
  app.add_option("--max-shard-size", options.max_shard_size,
                 "Size limit of each file of tensors in a directory (512MiB); by default 5GB")
      ->type_name("BYTES");
  add_number_option(app, "--shards", options.shards, 1, 99999,
                    "Files of tensors of about equal size in a directory, in place of a limit");
  add_number_option(app, "--step", options.step, 1, INT64_MAX,
                    "Step at which SRC was saved, where it does not tell");
  app.add_flag("--inspect", options.inspect,
               "List the tensors of SRC, and say what keeps gxp from training its model");
  app.add_flag("--hash", options.hash, "With --inspect: the SHA-256 of each tensor's bytes");
  app.add_flag("--verify", options.verify,
               "Compare all contents of SRC with the hashes recorded when it was written");
  app.add_flag("--diff", options.diff,
               "Compare the tensors of SRC and OUT, in any formats; exit code 1 if they differ");
  app.add_flag("--drop-optimizer", options.drop_optimizer,
               "Leave out the optimizer's state and settings, and keep the weights");
  app.add_flag("--dry-run", options.dry_run,
               "List the files that would be written, with their sizes, and write nothing");
  app.add_flag("--force", options.force, "Replace OUT if it is a checkpoint");
  app.add_flag(
      "--resume", options.resume,
      "Go on where the same conversion was interrupted, and keep whole files if this fails");
  add_format_option(app, options.format);
}

}  // namespace gxp

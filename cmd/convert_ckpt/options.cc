#include "cmd/convert_ckpt/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cmd/choice_option.h"
#include "cmd/options.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/tools/checkpoints/named_maps.h"

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
  refuse_if(!options.merge.empty() && !converts, "--merge goes with --to");
  refuse_if(!options.config.empty() && !converts, "--config goes with --to");
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
    fail(ErrorKind::kUsage,
         "convert-ckpt: --max-shard-size '{}' is not a size such as 5GB or 512MiB",
         options.max_shard_size);
  writing.shard_bytes = *bytes;
  return writing;
}

const CheckpointFormat* target_format(const ConvertOptions& options) {
  if (options.to.empty()) return nullptr;
  const CheckpointFormat& format = find_format(options.to);
  const bool in_shards = options.shards > 0 || !options.max_shard_size.empty();
  if (in_shards && !format.takes_shards)
    fail(ErrorKind::kUsage,
         "convert-ckpt: --shards and --max-shard-size: {} is always a single file", format.name);
  return &format;
}

void add_convert_options(CLI::App& app, ConvertOptions& options) {
  app.add_option("SRC", options.source,
                 "Checkpoint to read. A run's checkpoint directory stands for its newest "
                 "complete step, and a folder of checkpoint-N for the one with the highest number")
      ->required();
  app.add_option(
      "OUT", options.target,
      fmt::format("Path to write, or with --diff the checkpoint to compare. A directory; for "
                  "safetensors also a file NAME.safetensors; always a file for {}",
                  joined(file_format_names(), ", ")));
  app.add_option("--to", options.to, "Format of OUT")->type_name(joined(format_names(), "|"));
  add_choice_option(app, "--dtype", options.dtype, kCastNames,
                    "Type that floating-point weights are rounded to");
  app.add_option(
         "--map", options.map,
         fmt::format("TOML file of rules that rename, reorder, transpose and drop tensors, or the "
                     "name of rules that gxp has ({}). See Renaming in gxp-convert-ckpt(1)",
                     joined(map_names(), ", ")))
      ->type_name("MAP");
  app.add_option(
         "--merge", options.merge,
         "LoRA adapters to add to the weights of SRC: a PEFT directory, or a checkpoint of a "
         "run with [lora]; SRC itself for the weights of such a run")
      ->type_name("ADAPTER");
  app.add_option("--config", options.config,
                 "Hugging Face directory, or config.json, of the model of SRC, where SRC does not "
                 "record it. Its tokenizer goes with it")
      ->type_name("DIR");
  app.add_option("--max-shard-size", options.max_shard_size,
                 "Size limit of each tensor file of a directory, such as 512MiB. The default is "
                 "5GB")
      ->type_name("BYTES");
  add_number_option(app, "--shards", options.shards, 1, 99999,
                    "Number of tensor files of about equal size, instead of a limit");
  add_number_option(app, "--step", options.step, 1, INT64_MAX,
                    "Step at which SRC was saved, if SRC does not record it");
  app.add_flag("--inspect", options.inspect,
               "List the tensors of SRC, and the reasons why gxp cannot train the model");
  app.add_flag("--hash", options.hash, "With --inspect: show the SHA-256 of each tensor");
  app.add_flag("--verify", options.verify,
               "Check all of SRC against the hashes recorded when it was written");
  app.add_flag("--diff", options.diff,
               "Compare the tensors of SRC and OUT, in any formats. The exit code is 1 if they "
               "differ");
  app.add_flag("--drop-optimizer", options.drop_optimizer,
               "Keep the weights only, without optimizer state");
  app.add_flag("--dry-run", options.dry_run,
               "List the files that would be written, with sizes; write nothing");
  app.add_flag("--force", options.force, "Replace OUT if it is a checkpoint");
  app.add_flag("--resume", options.resume,
               "Continue an interrupted conversion. If this fails, finished files are kept");
  add_format_option(app, options.format);
}

}  // namespace gxp

#include "cmd/memcalc/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cmd/options.h"
#include "cmd/plan_options.h"

namespace gxp {
namespace {

void add_subject(CLI::App& app, MemcalcOptions& options) {
  app.add_option("RUN.toml|MODEL", options.model,
                 "A run file; or a published model, such as gpt2-xl (--list shows all), a Hugging "
                 "Face config.json, a .safetensors file, or a folder with either");
  app.add_option("--params", options.params,
                 "Number of parameters, such as 7e9, in place of a MODEL")
      ->type_name("COUNT");
  app.add_flag("--list", options.list,
               "List the published models; with --limit, the lowest stage whose states fit");
}

void add_states(CLI::App& app, MemcalcOptions& options) {
  app.add_option("--stage", options.stages, "ZeRO stages, a list such as 2,3")
      ->type_name("0|1|2|3")
      ->default_str("all");
  app.add_option("--precision", options.precision, "Types of parameters, gradients and states")
      ->type_name(names_of(precisions()))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer, "Optimizer whose states are counted")
      ->type_name(names_of(optimizer_states()))
      ->capture_default_str();
  add_number_option(app, "--sequence", options.sequence, 1, 1 << 20,
                    "Tokens of a sequence; adds activations, logits, the buffers of sharding and "
                    "the driver's context");
}

void add_limit(CLI::App& app, MemcalcOptions& options) {
  app.add_option(
         "--limit", options.limit,
         "Memory of a GPU, such as 80GiB or 80000MB; 80GB is what a GPU has whose data sheet "
         "says so, 80 GiB. Show which rows fit and, if there is a single row, what would "
         "make it fit")
      ->type_name("SIZE");
  app.add_option("--solve", options.solve,
                 "With --limit: find the fewest GPUs per stage, or the largest micro-batch, "
                 "sequence or number of layers, that fit; for a run file one of the last three")
      ->type_name("gpus|batch|seq|layers");
}

void add_compat_options(CLI::App& app, MemcalcOptions& options) {
  app.add_option("--compat", options.compat,
                 "Give another calculator's answer, with its units and defects")
      ->type_name(names_of(calculators()));
  add_under(app, "With --compat deepspeed", [&] {
    app.add_option(
           "--largest-layer", options.largest_layer,
           "Stage 3: parameters of the largest module, which a published model's name implies")
        ->type_name("COUNT");
    add_number_option(app, "--gpus-per-host", options.gpus_per_host, 1, kMostGpus, "GPUs of a host")
        ->default_str("8 if that divides their number, else all");
  });
}

}  // namespace

void add_memcalc_options(CLI::App& app, MemcalcOptions& options) {
  add_subject(app, options);
  app.add_option("--gpus,--nproc", options.gpus, "Numbers of GPUs, a list such as 1,8,64")
      ->type_name("LIST")
      ->default_str("1,8,64; with --compat 8; with a run file 1");
  add_limit(app, options);
  app.add_flag("--explain", options.explain,
               "Show the formula, the numbers and the source of each part");
  app.add_option("--unit", options.unit, "Unit of sizes in text; JSON and CSV are in bytes")
      ->type_name("GB|GiB|MB|MiB")
      ->capture_default_str();
  add_format_option(app, options.format);
  add_under(app, kWithModel, [&] {
    add_states(app, options);
    add_plan_options(app, options.plan, options.software);
    app.add_flag("--padding", options.padding,
                 "Show the padding that each layout of shards adds to the model");
    add_compat_options(app, options);
  });
  add_under(app, kWithRunFile, [&] {
    add_set_option(app, options.sets);
    app.add_option("--svg", options.svg, "Draw the memory over a step into this file")
        ->type_name("FILE");
  });
}

}  // namespace gxp

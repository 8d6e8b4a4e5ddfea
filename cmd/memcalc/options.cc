#include "cmd/memcalc/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cmd/options.h"
#include "cmd/plan_options.h"

namespace gxp {
namespace {

void add_compat_options(CLI::App& app, MemcalcOptions& options) {
  app.add_option("--compat", options.compat,
                 "Answer as another calculator does, with its units and defects")
      ->type_name(names_of(calculators()));
  app.add_option("--largest-layer", options.largest_layer,
                 "--compat deepspeed, stage 3: parameters of the largest module; a model's name "
                 "tells it")
      ->type_name("COUNT");
  add_number_option(app, "--gpus-per-host", options.gpus_per_host, 1, kMostGpus,
                    "--compat deepspeed: GPUs of one host; without it 8 if that divides, else all");
}

}  // namespace

void add_memcalc_options(CLI::App& app, MemcalcOptions& options) {
  app.add_option("MODEL", options.model,
                 "A published model, such as gpt2-xl (--list shows all); a Hugging Face "
                 "config.json, a .safetensors file, or a folder with either; or a run file, "
                 "RUN.toml");
  app.add_option("--params", options.params, "In place of MODEL: the number of parameters, 7e9")
      ->type_name("COUNT");
  app.add_option("--stage", options.stages, "ZeRO stages, a list; without it all of 0 to 3")
      ->type_name("0|1|2|3");
  app.add_option("--gpus,--nproc", options.gpus,
                 "Numbers of GPUs, a list; without it 1,8,64 (8 with --compat, 1 with a run file)")
      ->type_name("LIST");
  app.add_option("--precision", options.precision, "Types of parameters, gradients and states")
      ->type_name(names_of(precisions()))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer, "Which states there are")
      ->type_name(names_of(optimizer_states()))
      ->capture_default_str();
  app.add_option(
         "--limit", options.limit,
         "Memory of a GPU (80GB, 80GiB): mark what fits; of one --gpus and one --stage also tell "
         "what would make it fit")
      ->type_name("SIZE");
  app.add_option("--solve", options.solve,
                 "With --limit: the fewest GPUs per stage that fit, or the largest micro-batch, "
                 "sequence or number of layers; of a run file one of the last three")
      ->type_name("gpus|batch|seq|layers");
  add_number_option(app, "--sequence", options.sequence, 1, 1 << 20,
                    "With a MODEL: tokens of a sequence; adds activations, logits, sharding's "
                    "buffers and the context");
  add_plan_options(app, options.plan, options.software);
  app.add_flag("--padding", options.padding, "Show what each layout of shards adds to the model");
  add_compat_options(app, options);
  app.add_flag("--explain", options.explain, "Show formula, numbers and source of each part");
  app.add_option("--unit", options.unit, "Of all sizes in text; JSON and CSV are in bytes")
      ->type_name("GB|GiB|MB|MiB")
      ->capture_default_str();
  add_set_option(app, options.sets);
  app.add_option("--svg", options.svg, "With a run file: draw its memory over a step into FILE")
      ->type_name("FILE");
  app.add_flag("--list", options.list, "List the published models; with --limit, whose states fit");
  add_format_option(app, options.format);
}

}  // namespace gxp

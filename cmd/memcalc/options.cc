#include "cmd/memcalc/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cmd/choice_option.h"
#include "cmd/options.h"
#include "cmd/plan_options.h"

namespace gxp {
namespace {

void add_subject(CLI::App& app, MemcalcOptions& options) {
  app.add_option("RUN.toml|MODEL", options.model,
                 "A run file, a published model (see --list), or a model's config.json or "
                 ".safetensors. A folder with either file will do");
  app.add_option("--params", options.params,
                 "Number of parameters, such as 7e9, instead of a MODEL")
      ->type_name("COUNT");
  app.add_flag("--list", options.list,
               "List the published models. With --limit: and the lowest ZeRO stage that fits "
               "each");
}

void add_states(CLI::App& app, MemcalcOptions& options) {
  app.add_option("--stage", options.stages, "ZeRO stages, such as 2,3")
      ->type_name("0|1|2|3")
      ->default_str("all");
  app.add_option("--precision", options.precision,
                 "Types of parameters, gradients and optimizer state")
      ->type_name(names_of(precisions()))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer, "Optimizer")
      ->type_name(names_of(optimizer_states()))
      ->capture_default_str();
  add_number_option(app, "--sequence", options.sequence, 1, 1 << 20,
                    "Sequence length. Adds activations, logits, sharding buffers and the driver's "
                    "context");
}

void add_limit(CLI::App& app, MemcalcOptions& options) {
  app.add_option(
         "--limit", options.limit,
         "Memory of a GPU, such as 80GB or 80GiB: show which rows fit. 80GB is a GPU sold as 80 "
         "GB, which has 80 GiB; for 80 x 10^9 bytes write 80000MB. If a single row does not fit, "
         "list what would make it fit")
      ->type_name("SIZE");
  add_choice_option(app, "--solve", options.solve, kUnknowns,
                    "With --limit: the fewest GPUs, or the largest value of the others, that fits. "
                    "gpus is not for run files");
}

void add_compat_options(CLI::App& app, MemcalcOptions& options) {
  app.add_option("--compat", options.compat,
                 "Print the result of another calculator, in its units and with its defects")
      ->type_name(names_of(calculators()));
  add_under(app, "With --compat deepspeed", [&] {
    app.add_option("--largest-layer", options.largest_layer,
                   "Parameters of the largest module, for stage 3. Known for published models")
        ->type_name("COUNT");
    add_number_option(app, "--gpus-per-host", options.gpus_per_host, 1, kMostGpus, "GPUs per host")
        ->default_str("8 if that divides their number, else all");
  });
}

}  // namespace

void add_memcalc_options(CLI::App& app, MemcalcOptions& options) {
  add_subject(app, options);
  app.add_option("--gpus,--nproc", options.gpus, "Numbers of GPUs")
      ->type_name("LIST")
      ->default_str("1,8,64; with --compat 8; with a run file 1");
  add_limit(app, options);
  app.add_flag("--explain", options.explain,
               "Show the formula, the numbers and the source of each part");
  app.add_option("--unit", options.unit, "Unit of sizes in text. JSON and CSV always use bytes")
      ->type_name("GB|GiB|MB|MiB")
      ->capture_default_str();
  add_format_option(app, options.format);
  add_under(app, kWithModel, [&] {
    add_states(app, options);
    add_plan_options(app, options.plan, options.software);
    app.add_flag("--padding", options.padding,
                 "Show the padding that each sharding layout adds to the model");
    add_compat_options(app, options);
  });
  add_under(app, kWithRunFile, [&] {
    add_set_option(app, options.sets);
    add_number_option(app, "--nnodes", options.nnodes, 1, kMostGpus,
                      "Number of hosts, a divisor of each number of GPUs");
    app.add_option("--svg", options.svg, "Draw memory over the time of a step into FILE")
        ->type_name("FILE");
  });
}

}  // namespace gxp

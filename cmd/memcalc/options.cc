#include "cmd/memcalc/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "cmd/choice_option.h"
#include "cmd/options.h"
#include "lib/estimate/runtime_bytes.h"

namespace gxp {
namespace {

void add_compat_options(CLI::App& app, MemcalcOptions& options) {
  app.add_option("--compat", options.compat,
                 "Answer as another calculator does, with its units and defects")
      ->type_name(names_of(compatible_tools()));
  app.add_option("--largest-layer", options.largest_layer,
                 "--compat deepspeed, stage 3: parameters of the largest module; a model's name "
                 "tells it")
      ->type_name("COUNT");
  add_number_option(app, "--gpus-per-host", options.gpus_per_host, 1, kMostGpus,
                    "--compat deepspeed: GPUs of one host; without it 8 if that divides, else all");
}

// What activations depend on.
void add_activation_options(CLI::App& app, MemcalcOptions& options) {
  Question& question = options.activations;
  add_number_option(app, "--sequence", question.sequence, 1, 1 << 20,
                    "With a MODEL or --compat eleuther: tokens of a sequence; adds activations");
  add_number_option(app, "--micro-batch", question.micro_batch, 1, 1 << 16,
                    "With --sequence: sequences of a micro-batch (1)");
  add_choice_option(app, "--recompute", options.recompute, kRecomputeNames,
                    "With --sequence: activations that are computed again")
      ->each([&options](const std::string&) { options.recompute_asked = true; });
  add_number_option(app, "--tensor-parallel", question.tensor_parallel, 1, 1 << 10,
                    "GPUs that share each layer (1)");
  add_number_option(app, "--pipeline-parallel", options.pipeline_parallel, 1, 1 << 10,
                    "Stages that the layers are cut into; the first is told (1)");
  add_number_option(app, "--interleave", options.interleave, 1, 1 << 10,
                    "With --pipeline-parallel: pieces of the model on each GPU, in turn (1)");
  app.add_flag("--sequence-parallel", options.sequence_parallel,
               "With --tensor-parallel: norms and residuals are shared too");
  app.add_flag("--checkpoint-activations", question.checkpoint_activations,
               "--compat eleuther: activations are recomputed");
  app.add_flag("--partition-activations", question.partition_activations,
               "--compat eleuther: activations are divided by --tensor-parallel");
  for (const char* name : {"--checkpoint-activations", "--partition-activations"}) {
    app.get_option(name)->each([&options](const std::string&) { options.eleuther_asked = true; });
  }
}

// What lies beside the states, and what shards add.
void add_layout_options(CLI::App& app, MemcalcOptions& options) {
  app.add_option("--runtime", options.runtime,
                 "Add what this library holds beside: buckets, gathered units, the context")
      ->type_name(names_of(runtimes()));
  app.add_flag("--padding", options.padding, "Show what each layout of shards adds to the model");
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
  add_number_option(app, "--shard", options.shard, 1, kMostGpus,
                    "Hybrid sharding: GPUs that share one copy; replicas of it on the others");
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
  add_activation_options(app, options);
  add_layout_options(app, options);
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

// Which options of gxp memcalc exclude each other, and which lack another.
#include <algorithm>

#include "cmd/memcalc/options.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

void refuse(bool condition, const char* message) {
  if (condition) fail(ErrorKind::kUsage, "memcalc: {}", message);
}

// No less than the activations; 0 without a MODEL.
double most_activation_bytes(const MemcalcOptions& options) {
  const PublishedModel* model = model_of(options);
  if (model == nullptr) return 0;
  const auto sequence = double(options.activations.sequence);
  const double width = 40.0 * double(model->hidden + model->mlp + model->heads * model->head_size) +
                       5.0 * double(model->heads) * sequence;
  return sequence * options.activations.micro_batch *
         (width * double(model->layers) + 10.0 * double(model->vocabulary));
}

// gxp's own formula for activations needs a GPT block and 16-bit values.
void check_activations(const MemcalcOptions& options, bool eleuther) {
  const Question& question = options.activations;
  refuse(question.sequence == 0 && !eleuther && options.solve != "seq" &&
             (options.recompute_asked || question.micro_batch > 1),
         "activations depend on the length of a sequence; add --sequence");
  refuse(options.recompute_asked && !options.compat.empty(),
         "--recompute is no option of another calculator; leave it or --compat out");
  refuse(most_activation_bytes(options) > 1e18,
         "the activations pass 1e18 bytes; give a smaller --micro-batch or a shorter --sequence");
  if (question.sequence == 0 || eleuther) return;
  refuse(!options.compat.empty(),
         "--sequence goes with --compat eleuther or gxp's own estimate; leave the rest out");
  const PublishedModel* model = model_of(options);
  refuse(model == nullptr,
         "activations depend on the model's shape; give a MODEL whose shape is known, or leave out "
         "--sequence");
  refuse(
      options.precision == "fp32",
      "the formula for activations is for 16 bits; use --precision bf16 or leave out --sequence");
}

// What is looked for is not given, and what it depends on is.
void check_solve(const MemcalcOptions& options) {
  refuse(options.limit.empty(), "--solve lacks the memory to fit in; add --limit 80GB");
  refuse(!options.compat.empty() || options.explain,
         "--solve goes with gxp's own estimate, and tells its result alone; leave out --compat and "
         "--explain");
  const bool gpus = options.solve == "gpus";
  refuse(gpus && (!options.gpus.empty() || options.shard > 0),
         "--solve gpus finds how many GPUs share the model; leave out --gpus and --shard");
  if (gpus) return;
  if (std::ranges::find(estimate_quantities(), options.solve, &EstimateQuantity::name) ==
      estimate_quantities().end())
    fail(ErrorKind::kUsage, "--solve '{}': must be gpus, batch, seq or layers", options.solve);
  const EstimateQuantity& quantity = find_estimate_quantity(options.solve);
  refuse(model_of(options) == nullptr,
         "--solve batch, seq and layers depend on the model's shape; give a MODEL whose shape is "
         "known, or use --solve gpus");
  const bool sequence = options.activations.sequence > 0;
  refuse(quantity.name == "seq" && options.precision == "fp32",
         "the formula for activations is for 16 bits; use --precision bf16, or --solve layers");
  refuse(quantity.name == "seq" && sequence,
         "--solve seq finds the length of a sequence; leave out --sequence");
  refuse(quantity.name == "batch" && options.activations.micro_batch > 1,
         "--solve batch finds the micro-batch; leave out --micro-batch");
  refuse(quantity.name == "batch" && !sequence,
         "--solve batch depends on the length of a sequence; add --sequence");
}

void check_parallel(const MemcalcOptions& options) {
  const bool compat = !options.compat.empty();
  const bool staged = options.pipeline_parallel > 1;
  refuse(compat && (staged || options.interleave > 1 || options.sequence_parallel),
         "pipeline stages and sequence parallelism are no options of another calculator; leave "
         "them or --compat out");
  const bool eleuther = options.compat == "eleuther" && !options.model.empty();
  refuse(
      compat && !eleuther && options.activations.tensor_parallel > 1,
      "of other calculators EleutherAI's alone has --tensor-parallel, with --compat eleuther and "
      "a MODEL; leave it or --compat out");
  refuse(options.interleave > 1 && !staged,
         "--interleave is of pipeline stages; add --pipeline-parallel");
  refuse(options.sequence_parallel && options.activations.tensor_parallel == 1,
         "--sequence-parallel is of the GPUs that share a layer; add --tensor-parallel");
  const PublishedModel* model = model_of(options);
  refuse(model != nullptr && uint64_t(options.pipeline_parallel) > model->layers,
         "there are more pipeline stages than layers; give a smaller --pipeline-parallel");
  refuse(!options.runtime.empty() && compat,
         "--runtime goes with gxp's own estimate; leave it or --compat out");
  refuse(options.padding && (model == nullptr || compat || !options.solve.empty()),
         "--padding depends on the tensors; give a MODEL whose shape is known, without --compat or "
         "--solve");
}

}  // namespace

void check(const MemcalcOptions& options) {
  refuse(!options.sets.empty() || !options.svg.empty(),
         "--set and --svg go with a run file as MODEL, RUN.toml");
  refuse(options.model.empty() == options.params.empty(),
         "what to plan is not clear: give MODEL or --params, one of them");
  if (!options.solve.empty()) check_solve(options);
  const bool compat = !options.compat.empty();
  refuse(compat && options.shard > 0,
         "no other calculator knows hybrid sharding; leave out --shard or --compat");
  refuse(compat && options.optimizer != "adamw" && options.optimizer != "adam",
         "every other calculator assumes Adam; leave out --optimizer or --compat");
  const bool deepspeed = options.compat.starts_with("deepspeed");
  refuse(!deepspeed && (options.gpus_per_host > 0 || !options.largest_layer.empty()),
         "--gpus-per-host and --largest-layer go with --compat deepspeed");
  const bool eleuther = options.compat == "eleuther" && !options.model.empty();
  check_parallel(options);
  refuse(options.eleuther_asked && !eleuther,
         "checkpointed or partitioned activations go with --compat eleuther and a MODEL");
  check_activations(options, eleuther);
}

}  // namespace gxp

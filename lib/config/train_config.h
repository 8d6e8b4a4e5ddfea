// The user's settings of the loop and its number types: the sections [train] and [fp16] of
// run_config.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/number_type.h"
#include "lib/arch/recompute.h"
#include "lib/base/choice.h"
#include "lib/base/schema.h"

namespace gxp {

// The values of settings of [train].
enum class MatmulType { kPrecision, kTf32, kFp8 };
constexpr std::array<std::string_view, 3> words_of(MatmulType) {
  return {"precision", "tf32", "fp8"};
}
enum class Float8Sums { kF32, kFast };
constexpr std::array<std::string_view, 2> words_of(Float8Sums) { return {"f32", "fast"}; }
enum class CodeReuse { kAgain, kKept };
constexpr std::array<std::string_view, 2> words_of(CodeReuse) { return {"again", "kept"}; }
enum class Rounding { kNearest, kStochastic };
constexpr std::array<std::string_view, 2> words_of(Rounding) { return {"nearest", "stochastic"}; }
enum class KeepSetting { kAuto, kNone, kNorms, kAll };
constexpr std::array<std::string_view, 4> words_of(KeepSetting) {
  return {"auto", "none", "norms", "all"};
}
enum class Determinism { kWorldSize, kAnyWorldSize, kOff };
constexpr std::array<std::string_view, 3> words_of(Determinism) {
  return {"world-size", "any-world-size", "off"};
}
enum class BadStep { kStop, kSkip, kRollBack };
constexpr std::array<std::string_view, 3> words_of(BadStep) {
  return {"stop", "skip", "roll-back"};
}
enum class TrainDevice { kAuto, kCpu, kCuda };
constexpr std::array<std::string_view, 3> words_of(TrainDevice) { return {"auto", "cpu", "cuda"}; }
enum class CudaGraphs { kAuto, kOn, kOff };
constexpr std::array<std::string_view, 3> words_of(CudaGraphs) { return {"auto", "on", "off"}; }
enum class AttentionChoice { kAuto, kCudnn, kOwn };
constexpr std::array<std::string_view, 3> words_of(AttentionChoice) {
  return {"auto", "cudnn", "own"};
}

struct TrainConfig {
  int steps = 1000;
  int micro_batch = 8;  // rows per rank in one micro-batch
  int grad_accum = 1;
  int global_batch = 0;  // rows of a step; 0: as micro_batch and grad_accum make it
  Choice<NumberType> precision = NumberType::kFp32;
  Choice<MatmulType> matmul = MatmulType::kPrecision;
  Choice<Float8Sums> fp8_accumulation = Float8Sums::kF32;
  Choice<CodeReuse> fp8_weights = CodeReuse::kAgain;
  Choice<Rounding> rounding = Rounding::kNearest;
  Choice<NumberType> grad_accum_dtype = NumberType::kFp32;
  Choice<Recompute> recompute = Recompute::kNone;
  std::vector<std::string> recompute_units = {"*"};
  Choice<KeepSetting> keep = KeepSetting::kAuto;
  std::vector<std::string> frozen;  // patterns of tensors
  uint64_t seed = 1;
  Choice<Determinism> deterministic = Determinism::kWorldSize;
  int check_replicas = 100;  // steps between checks; 0: none
  Choice<BadStep> bad_step = BadStep::kStop;
  double loss_outlier = 0;  // in standard deviations; 0: none is one
  double norm_outlier = 0;
  Choice<TrainDevice> device = TrainDevice::kAuto;
  int threads = 0;                   // per rank; 0: the rank's share of the CPUs it may use
  uint64_t device_memory_bytes = 0;  // 0: what there is
  std::string gemm_cache = "auto";
  Choice<CudaGraphs> cuda_graphs = CudaGraphs::kAuto;
  Choice<AttentionChoice> attention = AttentionChoice::kAuto;
  int logits_rows = 0;     // 0: by the device
  int log_every = 10;      // steps between progress lines
  int valid_every = 0;     // steps between validations; 0: at the end only
  int valid_batches = 16;  // micro-batches per rank in one validation
  bool tensorboard = false;
  std::string run_dir;
  std::string profile_steps;
  std::string trace_steps;

  using S = TrainConfig;
  static void schema(auto& field) {
    field.section("train", "The training loop, its number types and its device.");
    declare_steps(field);
    declare_number_types(field);
    declare_kept_tensors(field);
    declare_reproducibility(field);
    declare_checks(field);
    declare_device(field);
    declare_reports(field);
  }

  static void declare_steps(auto& field) {
    field("steps", &S::steps, "Optimizer steps of the whole run.", positive);
    field("micro_batch", &S::micro_batch, "Rows per rank in a micro-batch.", between(1, 1 << 20));
    field("grad_accum", &S::grad_accum, "Micro-batches per step (gradient accumulation).",
          positive);
    field("global_batch", &S::global_batch,
          "Rows per step over all ranks, of which train.grad_accum is then made: a run keeps its "
          "batch, its order of samples and its learning rate on any number of ranks. A multiple of "
          "micro_batch x ranks; 0: micro_batch x grad_accum x ranks.",
          between(0, 1 << 30));
  }

  static void declare_number_types(auto& field) {
    field("precision", &S::precision,
          "Type of parameters and of matrix operands in the forward and backward pass. bf16 and "
          "fp16 halve the parameters and add f32 master weights. Sums, the residual stream and "
          "the optimizer use f32. fp16 scales the loss, see [fp16].");
    field("matmul", &S::matmul,
          "Type of the operands of matrix products. precision: that of train.precision. tf32: "
          "for fp32 on a GPU; tensor cores read 10 mantissa bits, at up to 7 times the rate, "
          "while sums and attention stay f32. fp8: the products of blocks, e4m3 forward and e5m2 "
          "for gradients, with one scale per tensor computed from its values; requires bf16 and "
          "model widths that are multiples of 16. GPUs of compute capability 8.9 or higher "
          "multiply in fp8, at up to twice the bf16 rate. A CPU computes the same values in "
          "bf16, more slowly. The head, attention and saved activations are not affected.");
    field("fp8_accumulation", &S::fp8_accumulation,
          "Accumulation of fp8 products in a GPU's forward pass. f32: full precision. fast: "
          "tensor cores keep about 14 bits between additions, as in other programs' FP8 recipes. "
          "A CPU always accumulates in f32.");
    field("fp8_weights", &S::fp8_weights,
          "Lifetime of the fp8 copies of weights on a GPU with matmul = \"fp8\". again: "
          "quantised for each product. kept: quantised once per step, in its first forward pass, "
          "and kept for all later passes, at 2 bytes per parameter, even where parameters are "
          "sharded. The bits are the same.");
    field("rounding", &S::rounding,
          "How f32 master weights are rounded to bf16 parameters in each step. stochastic: up or "
          "down at random, unbiased, so that updates below bf16's resolution take effect on "
          "average. The random bits depend on the seed, the step and the element only.");
    field("grad_accum_dtype", &S::grad_accum_dtype,
          "Type in which gradients are stored over the micro-batches and for the optimizer. The "
          "backward pass computes and adds them in f32 and rounds once per micro-batch. fp16 "
          "requires precision = \"fp16\", whose loss scale keeps gradients in range.");
  }

  static void declare_kept_tensors(auto& field) {
    field("recompute", &S::recompute,
          "Activations that blocks recompute in the backward pass instead of storing them: less "
          "memory, more time, the same bits. none: only those that train.keep does not store. "
          "selective: all but attention's output. full: all. The last block stores its "
          "activations where that takes no more memory.");
    field("recompute_units", &S::recompute_units,
          "Units that recompute: names, or patterns with *, ? and [...], such as \"h.[0-5]\". "
          "gxp shard-plan --units lists the units.");
    field("keep", &S::keep,
          "Cheap outputs (norms, activation functions) that a block stores in the forward pass "
          "instead of recomputing them in the backward pass. none: none. norms: those of norms; "
          "the bits do not change. all: also those of activation functions; on a GPU in bf16 or "
          "fp16 this may change bits, since fused products apply GELU to unrounded values. auto: "
          "norms on GPUs if each rank's planned memory then fits into 15/16 of the free memory, "
          "with room for timing trials and library code; otherwise none. Plans assume none. Blocks "
          "selected by train.recompute compute these outputs together with their other activations "
          "just before their backward pass.");
    field("frozen", &S::frozen,
          "Tensors that are not trained: names, or patterns with *, ? and [...], such as "
          "\"h.[0-5].*\". A leading transformer. or model. may be left out; gxp shard-plan "
          "--units lists the names. Frozen tensors are kept in train.precision alone, without "
          "gradients and optimizer state, and do not count in the gradient norm.");
  }

  static void declare_reproducibility(auto& field) {
    field("seed", &S::seed, "Seed of the initial weights, the data order and stochastic rounding.",
          at_least(0));
    field("deterministic", &S::deterministic,
          "Reproducibility of the trained weights, to the bit. world-size: for a given number of "
          "ranks. any-world-size: also for 1, 2, 4, ... ranks, where ranks x grad_accum is the "
          "same power of two; stores log2(grad_accum) more sums of a step's gradients. off: not "
          "guaranteed; also allows faster methods with no fixed order of addition: cuDNN's own "
          "choice for attention's backward pass, and NCCL where engine is auto.");
  }

  static void declare_checks(auto& field) {
    field("check_replicas", &S::check_replicas,
          "Steps between checks that ranks which should hold the same weights and optimizer state "
          "do, to the bit; they are also checked before each save. The run ends at a difference, "
          "saves nothing and names the rank. 0: never.",
          at_least(0));
    field("bad_step", &S::bad_step,
          "What happens if a step's loss or gradient norm is not finite, or is an outlier (below). "
          "stop: the run ends before any weight changes. skip: the step makes no update; ten such "
          "steps in a row end the run. roll-back: weights and optimizer state become those of the "
          "newest checkpoint, and the data continue after this step; three times at most from one "
          "checkpoint. With fp16, gradients that overflow only lower the loss scale.");
    field("loss_outlier", &S::loss_outlier,
          "A loss that exceeds the mean of the last 128 steps, its own included, by more than this "
          "many standard deviations (at most 11.2) is an outlier. 0: none is.",
          between(0, 11));
    field("norm_outlier", &S::norm_outlier, "The same for the gradient norm before clipping.",
          between(0, 11));
  }

  static void declare_device(auto& field) {
    field("device", &S::device,
          "Device that computes. cuda: each rank uses one of its visible GPUs, chosen "
          "round-robin by its local rank. auto: cuda if there is a usable GPU, otherwise cpu.");
    field("threads", &S::threads, "Threads per rank. 0: the rank's share of the CPUs.",
          between(0, 4096));
    field("device_memory_bytes", &S::device_memory_bytes,
          "Upper limit of the device memory a rank may use (on a CPU: of host memory). A run "
          "that needs more does not start; the error lists settings that would fit. 0: no limit.",
          at_least(0));
    field("gemm_cache", &S::gemm_cache,
          "Directory of the file that caches a GPU's fastest algorithm for each matrix product "
          "and the fastest split of cuDNN's attention, so that later runs have the same bits. "
          "auto: gxp in $XDG_CACHE_HOME or ~/.cache. off: nothing is timed; cuBLASLt's first "
          "working proposal and the smallest split are used.");
    field("cuda_graphs", &S::cuda_graphs,
          "Record the kernels that are the same in every step as CUDA graphs, one per unit and "
          "pass. Faster where launching kernels takes longer than running them; the bits are the "
          "same. auto: if a block's forward pass takes less than 1 ms at the GPU's rate; a "
          "failed recording is a warning. on: always; a failed recording ends the run.");
    field("attention", &S::attention,
          "Implementation of bf16 and fp16 attention on a GPU. cudnn: cuDNN 9; an error if it is "
          "absent, or if rows hold documents that are kept apart (data.cross_documents). own: "
          "gxp's kernels, which fp32 always uses. auto: cuDNN if it loads and supports the head "
          "size and the scores, which have neither a window nor a cap, and no documents are kept "
          "apart; the log names the choice. Plans include cuDNN's workspace, at most 1 GiB, unless "
          "set to own.");
    field("logits_rows", &S::logits_rows,
          "Tokens whose logits are in memory at the same time. 0: about 2^24 logits on a CPU and "
          "2^28 on a GPU, in equal pieces.",
          at_least(0));
  }

  static void declare_reports(auto& field) {
    field("log_every", &S::log_every, "Steps between progress lines.", positive);
    field("profile_steps", &S::profile_steps,
          "Steps for a GPU profiler to capture, such as \"10-12\". Run under nsys profile "
          "--capture-range=cudaProfilerApi --capture-range-end=stop, or ncu --profile-from-start "
          "off. \"\": none.");
    field("trace_steps", &S::trace_steps,
          "Steps to write as a timeline, such as \"10-12\": trace.json, in the directory of "
          "metrics.jsonl, which ui.perfetto.dev opens. It has all ranks on one clock, and each "
          "operation of a step, with the bytes of collectives. \"\": none.");
    field("valid_every", &S::valid_every,
          "Steps between validations. 0: one at the end, if data.valid is set.", at_least(0));
    field("valid_batches", &S::valid_batches, "Micro-batches per rank in a validation.", positive);
    field("tensorboard", &S::tensorboard,
          "Also write losses, gradient norms, learning rates and tokens/s of each step as an event "
          "file into the directory of metrics.jsonl; see them with tensorboard --logdir.");
    field("run_dir", &S::run_dir,
          "Directory of metrics.jsonl and the resolved settings; used by one run only. \"\": "
          "checkpoint.dir, or none if that is empty.");
  }
};

// DeepSpeed's keys, names and defaults.
struct Fp16Config {
  int initial_scale_power = 16;
  int window = 1000;
  int hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_scale = 1;

  using S = Fp16Config;
  static void schema(auto& field) {
    field.section("fp16", "Loss scaling with train.precision = \"fp16\".");
    field("initial_scale_power", &S::initial_scale_power,
          "The initial loss scale is 2 to this power.", between(0, 32));
    field("window", &S::window, "Steps without overflow after which the scale doubles.", positive);
    field("hysteresis", &S::hysteresis,
          "The scale is halved at this many overflows since it last grew, and at every later "
          "one. A step that overflows is skipped.",
          positive);
    field("consecutive_hysteresis", &S::consecutive_hysteresis,
          "Reset the count of overflows at every step without one.");
    field("min_scale", &S::min_scale, "Training fails if the scale would fall below this.",
          positive);
  }
};

}  // namespace gxp

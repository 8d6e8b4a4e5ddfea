// What a user can set about the loop and its number types: the sections [train] and [fp16] of
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

// What settings of [train] may be.
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
  std::string run_dir;
  std::string profile_steps;

  using S = TrainConfig;
  static void schema(auto& field) {
    field.section("train", "The loop.");
    declare_steps(field);
    declare_number_types(field);
    declare_kept_tensors(field);
    declare_reproducibility(field);
    declare_device(field);
    declare_reports(field);
  }

  static void declare_steps(auto& field) {
    field("steps", &S::steps, "Optimizer steps of the whole run.", positive);
    field("micro_batch", &S::micro_batch, "Rows per rank in one micro-batch.", between(1, 1 << 20));
    field("grad_accum", &S::grad_accum, "Micro-batches per step.", positive);
  }

  static void declare_number_types(auto& field) {
    field("precision", &S::precision,
          "Type of parameters and operands in the forward and backward pass. bf16 and fp16 keep "
          "them in half the bytes and f32 master weights besides; sums, the residual stream and "
          "the optimizer are f32. fp16 scales the loss: see [fp16].");
    field("matmul", &S::matmul,
          "Operands of matrix products. precision: as train.precision. tf32: for fp32 on a GPU, "
          "whose tensor cores take 10 bits of each fraction, at up to 7 times the rate; sums and "
          "attention are f32. fp8: those of blocks are rounded to 8 bits, e4m3, gradients to e5m2, "
          "with one scale a tensor, made from what it holds; for bf16 and models whose widths are "
          "multiples of 16. On a GPU of compute capability 8.9 or above they are multiplied so, at "
          "twice the rate; a CPU computes the same in bf16, more slowly. The head, attention and "
          "saved activations are as without it.");
    field("fp8_accumulation", &S::fp8_accumulation,
          "Sums of a GPU's fp8 products in the forward pass. f32: as all others. fast: the tensor "
          "cores keep about 14 bits between their additions, as FP8 recipes of other programs do; "
          "faster. On a CPU they are f32 either way.");
    field("fp8_weights", &S::fp8_weights,
          "8-bit codes of blocks' matrices on a GPU with matmul = \"fp8\". again: made for each "
          "product. kept: made once a step, by its first forward pass, and kept for all other "
          "passes and micro-batches in 2 bytes a parameter, also where parameters are sharded. The "
          "bits are the same.");
    field("rounding", &S::rounding,
          "How the f32 master weights become bf16 parameters for each step. stochastic: up or "
          "down, right on average, by random bits that depend on the seed, the step and the "
          "element alone, so that changes too small for bf16 are seen on average.");
    field("grad_accum_dtype", &S::grad_accum_dtype,
          "Type in which gradients are kept: over micro-batches and for the optimizer. Backward "
          "computes them in f32; they are added in f32 and rounded once a micro-batch. fp16: only "
          "with precision = \"fp16\", whose loss scale keeps them in its range.");
  }

  static void declare_kept_tensors(auto& field) {
    field("recompute", &S::recompute,
          "What blocks do not keep of their forward pass and make again in their backward pass, "
          "to the same bits, in less memory and more time. none: only what train.keep leaves out. "
          "selective: all but attention's output. full: all. The last block "
          "keeps what none does where that takes no more memory.");
    field("recompute_units", &S::recompute_units,
          "Units that do so: names, or patterns with *, ? and [...], as \"h.[0-5]\"; gxp "
          "shard-plan --units lists them.");
    field(
        "keep", &S::keep,
        "Which outputs of single passes over memory blocks keep from their forward for their "
        "backward pass, to save the time to make them again. norms: those of norms; the bits stay "
        "as they are. all: also those of activation functions; in bf16 and fp16 a GPU's fused "
        "products take GELUs of unrounded values, so the bits may be others. auto: norms on GPUs "
        "where each rank's planned memory is then at most 15/16 of what is free, and leaves room "
        "for trials of products and libraries' code, else none; plans count none. Blocks that "
        "train.recompute names make these with their other "
        "activations right before their backward pass, and keep them until then.");
    field("frozen", &S::frozen,
          "Tensors that are read and not trained: names, or patterns with *, ? and [...], as "
          "\"h.[0-5].*\"; a name's transformer. or model. may be left out, and gxp shard-plan "
          "--units lists them. They have no update, no optimizer state and no part in the "
          "gradients' norm. Nothing is kept or reduced of the gradients of a wrap that is frozen "
          "as a whole; one that is not holds those of its frozen tensors too.");
  }

  static void declare_reproducibility(auto& field) {
    field("seed", &S::seed,
          "Key of the first weights, of the order of the data and of stochastic rounding.",
          at_least(0));
    field("deterministic", &S::deterministic,
          "Promise about bits: the same weights for a given world size, for any, or none. "
          "any-world-size: what 1, 2, 4, ... ranks train is the same to the bit, where ranks x "
          "grad_accum is the same power of two; costs memory for log2(grad_accum) sums of a "
          "step's gradients. off: also faster ways whose sums have no fixed order: cuDNN's own "
          "choice for attention's backward pass, and NCCL's sums.");
  }

  static void declare_device(auto& field) {
    field("device", &S::device,
          "Where the arithmetic runs. cuda: each rank on a GPU of those that it sees, in turn by "
          "its number on its host. auto: cuda where there is a GPU that can be used, else cpu.");
    field("threads", &S::threads, "Threads per rank; 0: the rank's share of the CPUs.",
          between(0, 4096));
    field("device_memory_bytes", &S::device_memory_bytes,
          "Most bytes that a rank takes of its device; on a CPU, of the memory that it has as "
          "one. A run that would take more does not start, and says what would fit. 0: no limit.",
          at_least(0));
    field("gemm_cache", &S::gemm_cache,
          "The folder of a file in which a GPU's fastest algorithm for each matrix product is "
          "kept, once they have been timed, and the fastest slices for cuDNN's attention: later "
          "runs then have the same bits. auto: gxp in $XDG_CACHE_HOME or ~/.cache. off: nothing is "
          "timed, cuBLASLt's first guess that runs and the fewest slices.");
    field("cuda_graphs", &S::cuda_graphs,
          "Whether a GPU's kernels that are the same in every step are recorded as CUDA graphs, "
          "one for each unit and pass, which one call starts: faster where starting kernels takes "
          "longer than running them, and the same bits. auto: where a block's forward pass of a "
          "micro-batch takes less than 1 ms at the GPU's rate; if one cannot be recorded, the run "
          "warns and goes on without. on: then it fails.");
    field("attention", &S::attention,
          "By what a GPU computes attention of bf16 and fp16. cudnn: cuDNN 9, which must be "
          "there. own: gxp's kernels, which compute that of fp32 as well. auto: cuDNN where it "
          "can be loaded and takes the heads; the log names what is used. Plans count cuDNN's "
          "workspace, at most 1 GiB, unless it is own.");
    field("logits_rows", &S::logits_rows,
          "Tokens whose logits exist at a time. 0: as many as have 2^24 logits, on a GPU about "
          "2^28, in equal pieces: it needs large products to be busy.",
          at_least(0));
  }

  static void declare_reports(auto& field) {
    field("log_every", &S::log_every, "Steps between two progress lines.", positive);
    field("profile_steps", &S::profile_steps,
          "Steps that a GPU's profiler captures, as \"10-12\": nsys profile "
          "--capture-range=cudaProfilerApi --capture-range-end=stop, or ncu --profile-from-start "
          "off, then sees these alone. \"\": no step is marked.");
    field("valid_every", &S::valid_every,
          "Steps between two validations; 0: one at the end, if data.valid names files.",
          at_least(0));
    field("valid_batches", &S::valid_batches, "Micro-batches per rank in one validation.",
          positive);
    field("run_dir", &S::run_dir,
          "Directory of the resolved settings and metrics.jsonl, of one run; \"\": checkpoint.dir, "
          "or none without it.");
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
    field.section("fp16", "Scaling of the loss, with train.precision = \"fp16\".");
    field("initial_scale_power", &S::initial_scale_power, "The first scale is 2 to this power.",
          between(0, 32));
    field("window", &S::window, "Steps without overflow after which the scale doubles.", positive);
    field("hysteresis", &S::hysteresis,
          "The overflow, counted from the last rise on, that halves the scale, as all after it "
          "do. Every step with an overflow is left out.",
          positive);
    field("consecutive_hysteresis", &S::consecutive_hysteresis,
          "Count overflows from the last step without one instead.");
    field("min_scale", &S::min_scale, "Below this scale training fails.", positive);
  }
};

}  // namespace gxp

// The user's settings of sharding and offload: the sections [parallel] and [offload] of
// run_config.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/number_type.h"
#include "lib/base/choice.h"
#include "lib/base/schema.h"

namespace gxp {

// The values of parallel.strategy, in the order of the table (strategy.h); and their text for the
// manual.
std::vector<std::string_view> strategy_names();
std::string_view strategies_in_words();

// Which units form an FSDP unit.
enum class WrapPolicy {
  kBlock,  // each unit
  kSize,   // neighbouring units, until they have this many parameters
  kNone,   // all units
  kMatch,  // a new FSDP unit begins at each named unit
};
constexpr std::array<std::string_view, 4> words_of(WrapPolicy) {
  return {"block", "size", "none", "match"};
}
// When the next FSDP unit is gathered in the backward pass: during the current operation, after it
// and before its gradients are reduced, or when it is needed.
enum class BackwardPrefetch { kPre, kPost, kNone };
constexpr std::array<std::string_view, 3> words_of(BackwardPrefetch) {
  return {"pre", "post", "none"};
}

struct ParallelConfig {
  std::string strategy = "ddp";
  uint64_t bucket_bytes = 25u << 20;  // gradients reduced together
  Choice<NumberType> reduce_dtype = NumberType::kFp32;
  bool hold_gradients = true;
  int shard_size = 0;  // ranks; 0: by the strategy
  bool optimizer_over_replicas = false;
  Choice<WrapPolicy> wrap = WrapPolicy::kBlock;
  uint64_t wrap_min_params = 100'000'000;  // of WrapPolicy::kSize
  std::vector<std::string> wrap_units;     // of WrapPolicy::kMatch
  bool forward_prefetch = true;
  Choice<BackwardPrefetch> backward_prefetch = BackwardPrefetch::kPre;
  int prefetch_wraps = 1;
  uint64_t prefetch_params = 0;  // 0: no limit
  uint64_t max_live_params = 0;  // 0: no limit
  uint64_t persist_params = 0;
  uint64_t reuse_params = 0;
  bool hold_parameters = false;

  using S = ParallelConfig;
  static void schema(auto& field) {
    field.section("parallel", "Sharding of parameters, gradients and optimizer state over ranks.");
    declare_sharding(field);
    declare_wrapping(field);
    declare_gathers(field);
    declare_gradients(field);
  }

  static void declare_sharding(auto& field) {
    field("strategy", &S::strategy, strategies_in_words(), one_of(strategy_names()));
    field("shard_size", &S::shard_size,
          "Ranks in a shard group, which holds one copy of all sharded state; must divide the "
          "number of ranks. 0: all ranks; for hybrid strategies the ranks of one host.",
          at_least(0));
    field("optimizer_over_replicas", &S::optimizer_over_replicas,
          "Shard the optimizer over all shard groups instead of repeating it in each; updated "
          "parameters are then gathered.");
  }

  static void declare_wrapping(auto& field) {
    field("wrap", &S::wrap,
          "How units (the embedding, each block, the head) are grouped into FSDP units, which "
          "are gathered, reduced and sharded as a whole. block: each unit alone. size: "
          "neighbouring units until they have wrap_min_params parameters. match: a new FSDP unit "
          "begins at each unit that wrap_units names. none: one FSDP unit. gxp shard-plan "
          "--units shows the result. Bits depend on wrap, but not on the strategy.");
    field("wrap_min_params", &S::wrap_min_params,
          "Minimum parameters of an FSDP unit with wrap = \"size\".", positive);
    field("wrap_units", &S::wrap_units,
          "Patterns of unit names (with *, ? and [...]) for wrap = \"match\", such as "
          "[\"h.*[05]\"].");
  }

  static void declare_gathers(auto& field) {
    field("forward_prefetch", &S::forward_prefetch,
          "Gather the next FSDP unit's parameters during the forward pass of the current one. "
          "false: when they are needed, which takes less memory.");
    field("backward_prefetch", &S::backward_prefetch,
          "When to gather the next FSDP unit's parameters in the backward pass. pre: during the "
          "current unit's. post: after it, before its gradients are reduced. none: when they are "
          "needed.");
    field("prefetch_wraps", &S::prefetch_wraps,
          "Number of FSDP units whose sharded parameters are gathered ahead of their use.",
          between(1, 1 << 16));
    field("prefetch_params", &S::prefetch_params,
          "Maximum number of parameters gathered ahead of their use. 0: no limit.");
    field("max_live_params", &S::max_live_params,
          "Maximum number of gathered parameters at any time: beyond it, nothing is prefetched "
          "or kept by reuse_params. A unit that needs more by itself still gets them. 0: no "
          "limit.");
    field("persist_params", &S::persist_params,
          "FSDP units with at most this many parameters are gathered once per step and kept "
          "until it ends.");
    field("reuse_params", &S::reuse_params,
          "Keep a gathered FSDP unit if at most this many other parameters are used before it is "
          "used again.");
    field("hold_parameters", &S::hold_parameters,
          "With gradient accumulation, keep parameters that a backward pass has gathered for the "
          "next micro-batch: less traffic, more memory.");
  }

  static void declare_gradients(auto& field) {
    field("bucket_bytes", &S::bucket_bytes,
          "ddp: bytes of gradients that are reduced together, in whole FSDP units. Sharded "
          "gradients are reduced by FSDP unit.",
          positive);
    field("reduce_dtype", &S::reduce_dtype,
          "Type in which gradients are sent and summed over ranks. Each rank's gradient is "
          "rounded to it once, and so is every sum of two. fp16 requires train.precision = "
          "\"fp16\".");
    field("hold_gradients", &S::hold_gradients,
          "With gradient accumulation, add up a step's gradients locally and reduce them once; "
          "each rank then stores all of them. false: sharded gradients are reduced after every "
          "micro-batch, which takes less memory and rounds differently.");
  }
};

// The location of offloaded state.
enum class OffloadTo { kNone, kMemory, kFile };
constexpr std::array<std::string_view, 3> words_of(OffloadTo) { return {"none", "memory", "file"}; }
// How files of what is offloaded are read and written.
enum class OffloadIo { kAuto, kIoUring, kPread };
constexpr std::array<std::string_view, 3> words_of(OffloadIo) {
  return {"auto", "io_uring", "pread"};
}

struct OffloadConfig {
  Choice<OffloadTo> optimizer = OffloadTo::kNone;
  Choice<OffloadTo> parameters = OffloadTo::kNone;
  double ratio = 1;
  int step_tile = 1 << 20;  // elements
  std::string path;
  Choice<OffloadIo> io = OffloadIo::kAuto;

  using S = OffloadConfig;
  static void schema(auto& field) {
    field.section("offload",
                  "State kept outside the device. The bits of a run do not depend on it.");
    field("optimizer", &S::optimizer,
          "Location of the optimizer state, and of the master weights of bf16 and fp16. none: "
          "the device. memory: host memory. file: files in offload.path. The update streams the "
          "state through the device in tiles. Not available for muon and adafactor, which need "
          "whole tensors.");
    field("parameters", &S::parameters,
          "Location of the parameters, with the same values. They are fetched unit by unit in "
          "the forward and backward pass. Requires offload.optimizer and, with several ranks, a "
          "strategy that shards parameters.");
    field("ratio", &S::ratio, "Fraction of the optimizer state that is offloaded.",
          Check{.low = 0, .high = 1, .low_is_open = true});
    field("step_tile", &S::step_tile,
          "Elements per tile; two tiles are on the device at a time. Rounded up to a multiple of "
          "2048.",
          between(1, 1 << 30));
    field("path", &S::path,
          "Directory of the offload files, on each rank's host. The files are created without "
          "names, so a killed run leaves nothing behind.");
    field("io", &S::io,
          "How offload files are read and written. auto: io_uring if the build and the OS "
          "support it, otherwise pread and pwrite; the log names the choice.");
  }
};

}  // namespace gxp

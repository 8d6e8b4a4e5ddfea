// What a user can set about who holds what: the sections [parallel] and [offload] of run_config.h.
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

// What parallel.strategy may be, in the order of the table (strategy.h); and for the manual.
std::vector<std::string_view> strategy_names();
std::string_view strategies_in_words();

struct ParallelConfig {
  std::string strategy = "ddp";
  uint64_t bucket_bytes = 25u << 20;  // gradients reduced together
  Choice<NumberType> reduce_dtype = NumberType::kFp32;
  bool hold_gradients = true;
  int shard_size = 0;  // ranks; 0: by the strategy
  bool optimizer_over_replicas = false;
  std::string wrap = "block";
  uint64_t wrap_min_params = 100'000'000;  // of wrap "size"
  std::vector<std::string> wrap_units;     // of wrap "match"
  bool forward_prefetch = true;
  std::string backward_prefetch = "pre";
  int prefetch_wraps = 1;
  uint64_t prefetch_params = 0;  // 0: no limit
  uint64_t max_live_params = 0;  // 0: no limit
  uint64_t persist_params = 0;
  uint64_t reuse_params = 0;
  bool hold_parameters = false;

  using S = ParallelConfig;
  static void schema(auto& field) {
    field.section("parallel", "Who holds what.");
    declare_sharding(field);
    declare_wrapping(field);
    declare_gathers(field);
    declare_gradients(field);
  }

  static void declare_sharding(auto& field) {
    field("strategy", &S::strategy, strategies_in_words(), one_of(strategy_names()));
    field("shard_size", &S::shard_size,
          "Neighbouring ranks that hold one copy of what is sharded between them; a divisor of "
          "the number of ranks. 0: all ranks; of a hybrid strategy: those of one host.",
          at_least(0));
    field("optimizer_over_replicas", &S::optimizer_over_replicas,
          "Several groups of shard_size ranks share the optimizer's state and work too, and "
          "gather what they updated.");
  }

  static void declare_wrapping(auto& field) {
    field("wrap", &S::wrap,
          "What is gathered, reduced and cut into shards together. block: each unit (the "
          "embedding, each block, the head). size: neighbouring units until they have "
          "wrap_min_params parameters. match: from each unit that wrap_units names on. none: the "
          "model. gxp shard-plan --units shows it. The same bits under all strategies, but others "
          "than under another wrap.",
          one_of("block", "size", "none", "match"));
    field("wrap_min_params", &S::wrap_min_params,
          "With wrap = \"size\": parameters of a wrap, at least.", positive);
    field("wrap_units", &S::wrap_units,
          "With wrap = \"match\": patterns of unit names (with *, ? and [...]), such as "
          "[\"h.*[05]\"].");
  }

  static void declare_gathers(auto& field) {
    field("forward_prefetch", &S::forward_prefetch,
          "Gather the next wrap during a unit's forward; false: when it is needed, which holds "
          "less at a time.");
    field("backward_prefetch", &S::backward_prefetch,
          "Gather the next wrap during a unit's backward (pre), after it and before its gradients "
          "leave (post), or when it is needed (none).",
          one_of("pre", "post", "none"));
    field("prefetch_wraps", &S::prefetch_wraps,
          "Where parameters are sharded: wraps that are gathered ahead of their use.",
          between(1, 1 << 16));
    field("prefetch_params", &S::prefetch_params,
          "Parameters that are gathered ahead of their use at most; 0: no limit.");
    field("max_live_params", &S::max_live_params,
          "Parameters that are gathered at a time at most, where a unit does not need more "
          "itself: nothing is gathered ahead, or kept by reuse_params, beyond that. 0: no limit.");
    field("persist_params", &S::persist_params,
          "Wraps of at most so many parameters are gathered once a step, and stay until it ends.");
    field("reuse_params", &S::reuse_params,
          "A gathered wrap stays if at most so many other parameters are needed before it is "
          "needed again.");
    field("hold_parameters", &S::hold_parameters,
          "With gradient accumulation, what a backward pass has gathered stays for the next "
          "micro-batch, in exchange for that memory.");
  }

  static void declare_gradients(auto& field) {
    field("bucket_bytes", &S::bucket_bytes,
          "ddp: bytes of gradients reduced together, of whole wraps. Sharded gradients are "
          "reduced by wrap.",
          positive);
    field("reduce_dtype", &S::reduce_dtype,
          "Type in which gradients travel and are summed over the ranks: a rank's are rounded to "
          "it once, each sum of two again. fp16: only with train.precision = \"fp16\".");
    field("hold_gradients", &S::hold_gradients,
          "With gradient accumulation, ranks add up the gradients of a step's micro-batches and "
          "reduce them once; so they hold all of them. false: where gradients are sharded, each "
          "micro-batch's are reduced, in exchange for that memory; the sums are then rounded "
          "otherwise.");
  }
};

// Where what is offloaded lies.
enum class OffloadTo { kNone, kMemory, kFile };
constexpr std::array<std::string_view, 3> words_of(OffloadTo) { return {"none", "memory", "file"}; }

struct OffloadConfig {
  Choice<OffloadTo> optimizer = OffloadTo::kNone;
  Choice<OffloadTo> parameters = OffloadTo::kNone;
  double ratio = 1;
  int step_tile = 1 << 20;  // elements
  std::string path;
  std::string io = "auto";

  using S = OffloadConfig;
  static void schema(auto& field) {
    field.section("offload",
                  "What a rank keeps outside its device. The bits of a run do not depend on it.");
    field("optimizer", &S::optimizer,
          "Optimizer state, and the master weights of bf16 and fp16: on the device, in the host's "
          "memory, or in a file. The update fetches, changes and stores it in tiles. Not for muon "
          "and adafactor, which need whole tensors.");
    field("parameters", &S::parameters,
          "Where parameters lie, in the same words; fetched unit by unit, for forward and for "
          "backward. With several "
          "ranks for strategies that shard parameters. Only with offload.optimizer.");
    field("ratio", &S::ratio, "Part of the optimizer's state that is offloaded.",
          Check{.low = 0, .high = 1, .low_is_open = true});
    field("step_tile", &S::step_tile,
          "Elements of a tile; two tiles are on the device. Rounded up to a multiple of 2048.",
          between(1, 1 << 30));
    field("path", &S::path,
          "Directory of the files, on each rank's host. They have no names, so that nothing is "
          "left of them.");
    field("io", &S::io,
          "How files are read and written. auto: by io_uring where the build and the kernel have "
          "it, else by pread and pwrite; the log says which.",
          one_of("auto", "io_uring", "pread"));
  }
};

}  // namespace gxp

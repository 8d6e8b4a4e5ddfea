#include "lib/plan/runtime_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/bytes.h"
#include "lib/base/find_row.h"

namespace gxp {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kReduceBucket = 500'000'000;   // elements: reduce_bucket_size
constexpr uint64_t kMaxLive = 1'000'000'000;      // stage3_max_live_parameters
constexpr uint64_t kPrefetchBucket = 50'000'000;  // stage3_prefetch_bucket_size

Term make_term(const char* component, const char* formula, std::string numbers, uint64_t bytes,
               const char* source) {
  return {component, formula, std::move(numbers), bytes, source};
}

// 0.92 GiB of context and kernels with PyTorch 2.1 when all are loaded, and what NCCL takes at the
// first collective.
void add_context(const RuntimeQuestion& question, std::vector<Term>& terms) {
  constexpr const char* kSource = "stas00/ml-engineering, PyTorch 2.1 on A100";
  terms.push_back(make_term("CUDA context", "0.92 GiB", "0.92 GiB", 987'842'478, kSource));
  if (question.placement.gpus > 1)
    terms.push_back(make_term("NCCL", "1.45 GiB", "1.45 GiB", 1'556'925'644, kSource));
}

void add_stage_1_and_2(const RuntimeQuestion& question, std::vector<Term>& terms) {
  constexpr const char* kSource = "stage_1_and_2.py, setup_buckets and step";
  const uint64_t each = question.precision.gradient;
  const auto shards = uint64_t(question.placement.shard_count());
  terms.push_back(make_term("reduce buckets", "2 x 5e8 g (overlap_comm)",
                            fmt::format("2 x 5e8 x {}", each), 2 * kReduceBucket * each, kSource));
  terms.push_back(make_term("flattened bucket", "5e8 g", fmt::format("5e8 x {}", each),
                            kReduceBucket * each, kSource));
  if (question.precision.master != 0)
    terms.push_back(make_term("float32 gradients at the update", "4 P / S",
                              fmt::format("4 x {} / {}", question.parameters, shards),
                              4 * question.parameters / shards, kSource));
}

void add_stage_3(const RuntimeQuestion& question, std::vector<Term>& terms) {
  constexpr const char* kSource = "stage3.py, partitioned_param_coordinator.py";
  const uint64_t each = question.precision.parameter;
  const uint64_t live = std::min(kMaxLive, question.parameters);
  const uint64_t prefetched = std::min(kPrefetchBucket, question.parameters);
  terms.push_back(make_term("reduce bucket", "5e8 g",
                            fmt::format("5e8 x {}", question.precision.gradient),
                            kReduceBucket * question.precision.gradient, kSource));
  terms.push_back(make_term("live parameters", "min(1e9, P) b", fmt::format("{} x {}", live, each),
                            live * each, kSource));
  terms.push_back(make_term("prefetched parameters", "min(5e7, P) b",
                            fmt::format("{} x {}", prefetched, each), prefetched * each, kSource));
}

std::vector<Term> hold_deepspeed(const RuntimeQuestion& question) {
  std::vector<Term> terms;
  const int stage = question.placement.stage;
  if (stage == 1 || stage == 2) add_stage_1_and_2(question, terms);
  if (stage == 3) add_stage_3(question, terms);
  add_context(question, terms);
  return terms;
}

// Of the unit U that runs: the all-gather's flat output and the parameters copied out of it; of the
// next: its output; and the reduce-scatter's float32 input.
std::vector<Term> hold_fsdp2(const RuntimeQuestion& question) {
  constexpr const char* kSource = "_fsdp_collectives.py, _fsdp_param_group.py";
  std::vector<Term> terms;
  if (question.placement.stage >= 2 && question.unit > 0) {
    const uint64_t unit = question.unit;
    const uint64_t each = question.precision.parameter;
    const std::string numbers = fmt::format("{} x {}", unit, each);
    terms.push_back(
        make_term("gathered unit", "2 U b", "2 x " + numbers, 2 * unit * each, kSource));
    terms.push_back(make_term("prefetched unit", "U b", numbers, unit * each, kSource));
    terms.push_back(
        make_term("gradients to reduce", "4 U", fmt::format("4 x {}", unit), 4 * unit, kSource));
  }
  add_context(question, terms);
  return terms;
}

std::vector<Term> hold_ddp(const RuntimeQuestion& question) {
  std::vector<Term> terms;
  const uint64_t bytes = question.parameters * question.precision.gradient;
  terms.push_back(make_term(
      "gradient buckets", "views of the gradients",
      fmt::format("{} buckets, the first of 1 MiB, the rest of 25 MiB", ddp_bucket_count(bytes)), 0,
      "reducer.hpp"));
  add_context(question, terms);
  return terms;
}

constexpr std::array kRuntimes = {
    Runtime{"deepspeed", "DeepSpeed's ZeRO at its defaults", hold_deepspeed},
    Runtime{"fsdp2", "PyTorch's fully_shard, gradients reduced in float32", hold_fsdp2},
    Runtime{"ddp", "PyTorch's DistributedDataParallel", hold_ddp},
};

}  // namespace

std::span<const Runtime> runtimes() { return kRuntimes; }

const Runtime& find_runtime(std::string_view name) {
  return find_row(kRuntimes, name, "--runtime");
}

uint64_t ddp_bucket_count(uint64_t gradient_bytes) {
  if (gradient_bytes <= kMiB) return 1;
  return 1 + (gradient_bytes - kMiB + 25 * kMiB - 1) / (25 * kMiB);
}

CachedBlock cached_block(uint64_t bytes) {
  const uint64_t block = round_up(std::max<uint64_t>(bytes, 1), 512);
  if (block <= kMiB) return {block, 2 * kMiB};
  if (block < 10 * kMiB) return {block, 20 * kMiB};
  return {block, round_up(block, 2 * kMiB)};
}

}  // namespace gxp

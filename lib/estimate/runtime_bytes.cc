#include "lib/estimate/runtime_bytes.h"

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

// What has been measured: context and kernels, and what NCCL takes at the first collective.
void add_context(const RuntimeQuestion& question, std::vector<Term>& terms) {
  constexpr const char* kSource = "stas00/ml-engineering, PyTorch 2.1 on A100";
  terms.push_back(make_term("CUDA context", "0.92 GiB",
                            "0.92 GiB with all kernels loaded (0.47 where they are loaded when "
                            "used; 1.78 with PyTorch 1.10)",
                            987'842'478, kSource));
  if (question.placement.gpus > 1)
    terms.push_back(make_term("NCCL", "1.45 GiB", "2.00 - 0.55 GiB at the first barrier",
                              1'556'925'644, kSource));
}

// Each of the parts as one block.
void add_rounding(std::vector<Term>& terms) {
  uint64_t bytes = 0;
  for (const Term& term : terms)
    bytes += term.bytes == 0 ? 0 : cached_block(term.bytes).segment - term.bytes;
  terms.push_back(make_term("rounded up by the allocator", "to 512 B, in segments",
                            "of 2 MiB up to 1 MiB, of 20 MiB up to 10 MiB, else of whole 2 MiB",
                            bytes, "CUDACachingAllocator.cpp"));
}

void add_stage_1_and_2(const RuntimeQuestion& question, std::vector<Term>& terms) {
  constexpr const char* kSource = "stage_1_and_2.py, setup_buckets and step";
  const uint64_t each = question.precision.gradient;
  const auto shards = uint64_t(question.placement.shard_count());
  terms.push_back(make_term("reduce buckets", "2 x 5e8 g (overlap_comm)",
                            fmt::format("2 x 5e8 x {}", each), 2 * kReduceBucket * each, kSource));
  terms.push_back(make_term("flattened bucket", "5e8 g", fmt::format("5e8 x {}", each),
                            kReduceBucket * each,
                            "stage_1_and_2.py; a larger tensor is reduced alone, without copy"));
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
  if (question.small > 0)
    terms.push_back(make_term("tensors below 1e5 elements, whole", "s b",
                              fmt::format("{} x {}", question.small, each), question.small * each,
                              kSource));
}

std::vector<Term> hold_deepspeed(const RuntimeQuestion& question) {
  std::vector<Term> terms;
  const int stage = question.placement.stage;
  if (stage == 1 || stage == 2) add_stage_1_and_2(question, terms);
  if (stage == 3) add_stage_3(question, terms);
  add_rounding(terms);
  add_context(question, terms);
  return terms;
}

// The rule of thumb that is told of both buckets; DeepSpeed's code shows no 4.5.
std::vector<Term> hold_as_in_documentation(const RuntimeQuestion& question) {
  const uint64_t each = question.precision.gradient;
  std::vector<Term> terms = {make_term(
      "reduce and gather buckets", "4.5 x 2 x 5e8 g", fmt::format("4.5 x 2 x 5e8 x {}", each),
      9 * kReduceBucket * each, "Hugging Face's documentation of DeepSpeed")};
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
  add_rounding(terms);
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
    Runtime{"deepspeed-rule", "its buckets by the rule of thumb, 4.5 times 5e8 elements each",
            hold_as_in_documentation},
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

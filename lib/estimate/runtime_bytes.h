// What training libraries hold on a GPU beside model states and activations: buckets, gathered
// units, transients of the update, the driver's context. Pure; bytes of one GPU.
// Source: DeepSpeed runtime/zero/stage_1_and_2.py and stage3.py, PyTorch _fsdp_collectives.py and
// reducer.hpp, c10/cuda/CUDACachingAllocator.cpp; measured: stas00/ml-engineering, on A100.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/estimate/model_states.h"
#include "lib/estimate/term.h"

namespace gxp {

// DeepSpeed's stage 3 keeps smaller tensors whole on each GPU (stage3_param_persistence_threshold).
inline constexpr uint64_t kPersistentTensor = 100'000;

struct RuntimeQuestion {
  uint64_t parameters = 0;
  uint64_t unit = 0;   // parameters of the largest block; 0: not known
  uint64_t small = 0;  // those in tensors of less than kPersistentTensor; 0: not known
  Precision precision;
  Placement placement;
};

struct Runtime {
  std::string_view name;  // "deepspeed"
  std::string_view meaning;
  // At its default settings.
  std::vector<Term> (*buffers)(const RuntimeQuestion& question);
};

std::span<const Runtime> runtimes();

// kUsage with a near match if there is none of that name.
const Runtime& find_runtime(std::string_view name);

// PyTorch's DistributedDataParallel: gradients lie in buckets of 25 MiB, the first of 1 MiB.
// Buckets of `gradient_bytes` of gradients that are no larger than a bucket each.
uint64_t ddp_bucket_count(uint64_t gradient_bytes);

// What PyTorch's caching allocator takes from the driver for one request: rounded to 512 bytes; up
// to 1 MiB out of a segment of 2 MiB, up to 10 MiB out of one of 20 MiB, else in whole 2 MiB.
struct CachedBlock {
  uint64_t block = 0;
  uint64_t segment = 0;
};
CachedBlock cached_block(uint64_t bytes);

}  // namespace gxp

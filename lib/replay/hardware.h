// GPUs, how they are joined, and the software that trains on them, as a step's time depends on
// them. Rates of a GPU are those of its data sheet, without sparsity; what is reached of them are
// constants of its generation, fitted to published runs (docs/RESULTS.md says which, and the
// errors). Pure.
//
// One more GPU, machine or software is one row of a table, with its source.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gxp {

// Fitted. Shares are of the data sheet's rate. Bytes cross the memory in a forward pass outside of
// products and attention, for each token and, of a block, each fifteenth of its width: the sum of
// all that its products read and write, 15 hidden sizes in a GPT.
struct Generation {
  std::string_view name;
  double matmul_16 = 0;        // share of the bf16 rate that a large product reaches
  double matmul_8 = 0;         // of the fp8 rate
  double half_width = 0;       // a product of width w takes 1 + half_width / w of its time
  double attention_flash = 0;  // share of the bf16 rate in fused attention
  double attention_triton = 0;
  double score_bytes = 0;        // for each score, where they are stored
  double eager_bytes = 0;        // PyTorch, operation by operation
  double eager_llama_bytes = 0;  // the same with RMSNorm, rotary positions and a gated MLP
  double fused_bytes = 0;        // compiled, or fused by hand
  double megatron_2021_bytes = 0;
  double fp8_bytes = 0;           // more for casts and scales, one scale a tensor
  double mxfp8_bytes = 0;         // one scale for 32 values; 0: products do not take such
  double head_bytes = 0;          // for each logit, forward and backward
  double host_s = 0;              // of an eager block and micro-batch: launches, waits for gathers
  double step_s = 0;              // of a step: reading, logging, norms
  double exposed = 0;             // share of sharding's communication that compute does not hide
  double tensor_exposed = 0;      // the same of tensor parallelism, where it is overlapped
  double link_share = 0;          // share of NVLink's rate that a collective reaches
  double network_share = 0;       // of the NICs'
  double network_share_fsdp = 0;  // likewise, by PyTorch's FSDP of 2024
  double network_share_2021 = 0;  // likewise, by DeepSpeed in 2021
  // Of gxp's own runs (replay/gpu_time.h): Hopper's products and attention's backward as an H100
  // was measured (docs/RESULTS.md), the others estimated.
  double own_product = 0;          // share of the bf16 rate that a large product reaches, timed
  double own_product_8 = 0;        // the same of the fp8 rate, sums kept in f32; 0: not known
  double own_half_width = 0;       // a product of width w takes 1 + own_half_width / w of its time
  double pass_share = 0;           // of the memory's rate, by a kernel that reads and writes once
  double ordered_attention = 0;    // of flash attention's rate, backward with a fixed order of sums
  double any_order_attention = 0;  // likewise, in any order
  double instructions_per_s = 0;   // of all lanes: multiprocessors * 128 lanes * clock
  double gap_s = 0;                // between two kernels of a stream
};

struct Gpu {
  std::string_view name;         // "h100"
  std::string_view driver_name;  // a part of its description by a driver; "": not known
  const Generation* generation = nullptr;
  double flops_16 = 0;  // bf16
  double flops_8 = 0;   // fp8; 0: has none
  double memory_bytes_per_s = 0;
  uint64_t memory_bytes = 0;
  int memory_gb = 0;       // as the data sheet says it: 80 for 80 GiB
  double clock_share = 1;  // of the rates, under a lower power limit
  // f32 operands of which 10 bits of the fraction count: half of bf16's on all of these data sheets.
  [[nodiscard]] constexpr double flops_tf32() const { return flops_16 / 2; }
};

// The one that a driver describes so ("NVIDIA H100 80GB HBM3, ..."); null if its rate is not known:
// a card of another form has another.
const Gpu* find_gpu_of_device(std::string_view description);

// Per GPU and direction.
struct Links {
  int gpus_per_domain = 8;        // joined by NVLink
  double nvlink_bytes_per_s = 0;  // data sheet
  double network_bytes_per_s = 0;
  double host_bytes_per_s = 0;  // to main memory
};

struct Hardware {
  std::string_view name;  // "dgx-h100"
  const Gpu* gpu = nullptr;
  Links links;
};

enum class Elementwise { kEager, kFused, kMegatron2021 };
enum class Attention { kTriton, kFlash, kStored };

// Whose buffers shards are gathered and reduced in (predict_memory.h).
enum class ShardBuffers { kUnits, kFsdp2, kDeepSpeed };

struct Software {
  std::string_view name;  // "fsdp"
  Elementwise elementwise = Elementwise::kFused;
  Attention attention = Attention::kFlash;
  bool overlaps_tensor = false;  // tensor parallelism's communication with products
  bool eager = false;            // pays host_s
  bool network_2021 = false;
  ShardBuffers buffers = ShardBuffers::kUnits;
  // Bytes per logit at the loss. 14: 16-bit logits and their gradient, float32 copy, logarithms and
  // gradient; 6 with a fused loss: 16-bit logits and a float32 gradient.
  int logit_bytes = 6;
};

std::span<const Gpu> gpus();
std::span<const Hardware> hardware_table();
std::span<const Software> softwares();

// kUsage with a near match if there is none of that name.
const Gpu& find_gpu(std::string_view name);
const Hardware& find_hardware(std::string_view name);
const Software& find_software(std::string_view name);

}  // namespace gxp

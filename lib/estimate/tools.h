// The answers behind the table of compatibility.h, one function a tool. Each reads the question as
// the tool reads its arguments; ask() has checked it.
#pragma once

#include <vector>

#include "lib/estimate/compatibility.h"

namespace gxp {

constexpr double kGib = 1 << 30;

// ZeRO paper (arXiv:1910.02054, figure 1): K = 12 bytes of optimizer state, 2 + 2 of parameters and
// gradients, shards not rounded up, decimal GB.
std::vector<ToolEstimate> ask_paper(const Question& question);

// estimate_zero2_model_states_mem_needs() of deepspeed/runtime/zero/stage_1_and_2.py and its twin
// in stage3.py. The CPU's bytes of ZeRO-2 with offload grow with the GPUs of all hosts though they
// are printed per host; "GB" are GiB.
std::vector<ToolEstimate> ask_deepspeed(const Question& question);

// docs/code-docs/source/memory.rst of DeepSpeed, which has kept an older formula of ZeRO-2.
std::vector<ToolEstimate> ask_deepspeed_docs(const Question& question);

// get_instantiation_memory_required_per_gpu() of deepspeed/autotuning/autotuner.py: 2 + 2 + 16
// bytes per parameter, shards not rounded up, no activations.
std::vector<ToolEstimate> ask_autotuner(const Question& question);

// docs/source/api-guide/dist_optimizer.md and training/theoretical_memory_usage.py of Megatron-LM:
// the distributed optimizer shards optimizer state, never gradients or parameters.
std::vector<ToolEstimate> ask_megatron(const Question& question);

// calc/calc_transformer_mem.py of EleutherAI/cookbook. Gradients are not divided by tensor
// parallelism, "checkpointed" activations are those of selective recomputation, grouped-query
// attention and gated MLPs are not seen in a Hugging Face config.
std::vector<ToolEstimate> ask_eleuther(const Question& question);

// `accelerate estimate-memory`: no sharding, and the largest of its rows instead of their sum;
// "GB" are GiB.
std::vector<ToolEstimate> ask_accelerate(const Question& question);

}  // namespace gxp

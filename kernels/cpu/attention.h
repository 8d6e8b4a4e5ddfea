// Causal self-attention of one head of one batch row: one table for each instruction set.
#pragma once

#include <cstddef>

#include "kernels/attention_args.h"

namespace gxp {

// Forward: `pair` = batch row * heads + head. Backward: `group` = batch row * kv_heads + head of
// keys and values, with all the heads of queries that read it, in order: their gradients of its
// keys and values are summed. Pairs and groups are independent; each reads and writes its own
// slices. `scratch` holds attention_scratch_floats(), aligned to 64 bytes; its content is of no
// interest.
struct AttentionKernels {
  void (*forward)(const AttentionForward& args, size_t pair, float* scratch);
  // Likewise; `scratch` holds cached_scratch_floats().
  void (*cached)(const AttentionCached& args, size_t pair, float* scratch);
  void (*backward)(const AttentionBackward& args, size_t group, float* scratch);
};

// Enough for any instruction set and for both passes: grows with T * D.
size_t attention_scratch_floats(const AttentionShape& shape);
size_t cached_scratch_floats(const AttentionCached& args);

}  // namespace gxp

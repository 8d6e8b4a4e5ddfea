// Activations of a model's blocks, by formula: what the forward pass of a micro-batch keeps for its
// backward pass, with 16-bit values, on one of the GPUs that share each layer.
//
// With s tokens, B sequences, h hidden, a heads, L layers, bytes of GPT blocks (one-byte dropout
// masks, an MLP of 4 hidden) are
//   none        s B h L (34 + 5 a s / h)   attention 11 + 5 a s / h, MLP 19, LayerNorms 4
//   selective   s B h L 34                 the scores of the attention are computed again
//   full        s B h L 2                  and one layer, live while it is computed again
// Tensor parallelism over t divides the products' 24 of the 34 and the scores; sequence parallelism
// with it all. A Llama block has no dropout; with q = a head_size, k of its key-value heads, an MLP
// of f, it keeps 8 h + 4 q + 4 k + 6 f, and 2 a s of scores.
// Source: Korthikanti et al., arXiv:2205.05198, table 2 and section 4.2. Pure.
#pragma once

#include <cstdint>

#include "lib/arch/published_models.h"
#include "lib/arch/recompute.h"

namespace gxp {

// A micro-batch, and how its layers are shared.
struct ActivationBatch {
  uint64_t sequence = 0;
  uint64_t micro_batch = 1;
  uint64_t tensor_parallel = 1;
  bool sequence_parallel = false;
  bool dropout = true;  // two masks in a GPT block
};

// Bytes that one layer keeps. With full recomputation, a layer that is being recomputed
// additionally takes its activations without recomputation.
uint64_t layer_activations(const PublishedModel& model, const ActivationBatch& batch,
                           Recompute recompute);

}  // namespace gxp

// Activations of a GPT block, by formula: what the forward pass keeps for the backward pass, with
// 16-bit values, one-byte dropout masks and an MLP of 4 hidden, on one GPU of one pipeline stage.
//
// With s tokens, B sequences, h hidden, a heads, L layers, bytes are
//   none        s B h L (34 + 5 a s / h)   attention 11 + 5 a s / h, MLP 19, LayerNorms 4
//   selective   s B h L 34                 the scores of the attention are computed again
//   full        s B h L 2                  and one layer, live while it is computed again
// Tensor parallelism over t divides the products' 24 of the 34 and the scores; sequence parallelism
// with it all.
// Source: Korthikanti et al., arXiv:2205.05198, table 2. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/arch/recompute.h"
#include "lib/plan/term.h"

namespace gxp {

struct ActivationShape {
  uint64_t layers = 0;
  uint64_t hidden = 0;
  uint64_t heads = 0;
  uint64_t vocabulary = 0;
  uint64_t sequence = 0;
  uint64_t micro_batch = 1;
  uint64_t tensor_parallel = 1;
  bool sequence_parallel = false;
};

// What all layers keep.
uint64_t kept_activations(const ActivationShape& shape, Recompute recompute);

// The layer that is computed again; 0 unless recomputation is full.
uint64_t live_layer(const ActivationShape& shape, Recompute recompute);

// s B V logits of so many bytes: 4 in float32; 2 + 4 + 4 at the peak of a loss that is not fused
// (16-bit logits, their float32 copy, its gradient).
uint64_t logits(const ActivationShape& shape, uint64_t bytes_each);

// Kept activations, live layer and float32 logits, with formula and source.
std::vector<Term> explain_activations(const ActivationShape& shape, Recompute recompute);

}  // namespace gxp

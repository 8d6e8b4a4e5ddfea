// The part of a head after its norm: logits by one matrix, cap * tanh(factor * (x W^T + bias) / cap),
// the loss of each token and its gradient, through pieces of the micro-batch's logits (logits_in_pieces in
// lib/arch/architecture.h).
#pragma once

#include "lib/model/model.h"

namespace gxp {

// What a head computes with after its norm.
struct HeadTensors {
  Tensor weight;             // (V, C), its own or borrowed
  Tensor weight_gradient{};  // empty: not computed
  Tensor bias{};             // (V), and its gradient; empty: none
  Tensor bias_gradient{};
  Tensor normed{};   // (N, C)
  Tensor dnormed{};  // (N, C), stored by differentiate_losses()
  Tensor logits{};   // scratch for pieces of the logits, flat; whole rows of V
  Tensor capped{};   // as large, for differentiate_losses() with a cap
  float factor = 1;
  float cap = 0;  // 0: none
};

// t.losses, and the gradients of `scale` times their sum: dnormed, and weight_gradient, which is
// stored or added to (t.accumulate).
void differentiate_losses(Ops& ops, const UnitTensors& t, const HeadTensors& head, float scale);
// t.losses alone.
void compute_losses(Ops& ops, const UnitTensors& t, const HeadTensors& head);
// t.output (B, V) = the logits of the last position of each row. Needs no `logits`.
void compute_last_logits(Ops& ops, const UnitTensors& t, const HeadTensors& head);

}  // namespace gxp

// The part of a head after its norm, common to all families: logits by one matrix (V, C), the loss
// of each token and its gradient, through pieces of the micro-batch's logits (logits_in_pieces in
// lib/arch/architecture.h).
#pragma once

#include "lib/model/model.h"

namespace gxp {

// The head's matrix, its own or borrowed, and its gradient, empty if it is not wanted.
struct HeadMatrix {
  Tensor weight;
  Tensor gradient;
};

// t.losses from `normed` (N, C); dnormed (N, C) is stored, the matrix's gradient stored or added if
// `accumulate`. `logits` is scratch, flat. `scale` as in Model::loss.
struct LossOptions {
  float scale;
  bool accumulate;
};
void differentiate_losses(Ops& ops, const UnitTensors& t, const HeadMatrix& head,
                          const Tensor& normed, const Tensor& dnormed, const Tensor& logits,
                          const LossOptions& options);
// t.losses alone.
void compute_losses(Ops& ops, const UnitTensors& t, const HeadMatrix& head, const Tensor& normed,
                    const Tensor& logits);
// t.output (B, V) = the logits of the last position of each row.
void compute_last_logits(Ops& ops, const UnitTensors& t, const HeadMatrix& head,
                         const Tensor& normed);

}  // namespace gxp

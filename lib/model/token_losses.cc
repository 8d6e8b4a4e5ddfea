#include "lib/model/token_losses.h"

#include <algorithm>

#include "lib/model/views.h"

namespace gxp {
namespace {

// Calls body(first token, tokens, logits) for each piece of the tokens whose logits fit in
// head.logits.
template <class Body>
void for_pieces(const HeadTensors& head, const Body& body) {
  const size_t vocabulary = head.weight.shape[0];
  const size_t tokens = head.normed.shape[0];
  const size_t most = head.logits.count() / vocabulary;
  const Tensor pieces = head.logits.reshape({most, vocabulary});
  for (size_t begin = 0; begin < tokens; begin += most) {
    const size_t count = std::min(most, tokens - begin);
    body(begin, count, pieces.rows(0, count));
  }
}

}  // namespace

void differentiate_losses(Ops& ops, const UnitTensors& t, const HeadTensors& head, float scale) {
  for_pieces(head, [&](size_t begin, size_t count, const Tensor& logits) {
    const Tensor normed = head.normed.rows(begin, count);
    ops.matmul(logits, normed, head.weight, {.transpose_b = true});
    ops.classifier(logits, t.losses.rows(begin, count), flat(t.targets).rows(begin, count), scale);
    ops.matmul(head.dnormed.rows(begin, count), logits, head.weight, {});
    if (is_trained(head.weight_gradient))
      ops.matmul(head.weight_gradient, logits, normed,
                 {.transpose_a = true, .accumulate = t.accumulate || begin > 0});
  });
}

void compute_losses(Ops& ops, const UnitTensors& t, const HeadTensors& head) {
  for_pieces(head, [&](size_t begin, size_t count, const Tensor& logits) {
    ops.matmul(logits, head.normed.rows(begin, count), head.weight, {.transpose_b = true});
    ops.classifier_loss(t.losses.rows(begin, count), logits, flat(t.targets).rows(begin, count));
  });
}

void compute_last_logits(Ops& ops, const UnitTensors& t, const HeadTensors& head) {
  const size_t positions = t.input.shape[1];
  for (size_t row = 0; row < t.input.shape[0]; ++row) {
    ops.matmul(t.output.rows(row, 1), head.normed.rows((row + 1) * positions - 1, 1), head.weight,
               {.transpose_b = true});
  }
}

}  // namespace gxp

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

void make_logits(Ops& ops, const Tensor& logits, const Tensor& normed, const HeadTensors& head) {
  ops.matmul(logits, normed, head.weight, {.transpose_b = true, .bias = head.bias});
  if (head.factor != 1) ops.scale(logits, logits, head.factor);
  if (head.cap > 0) ops.cap_forward(logits, logits, head.cap);
}

// Whether gradients of parameters are added to what is there, for the piece that begins here.
bool adds(const UnitTensors& t, size_t begin) { return t.accumulate || begin > 0; }

}  // namespace

void differentiate_losses(Ops& ops, const UnitTensors& t, const HeadTensors& head, float scale) {
  for_pieces(head, [&](size_t begin, size_t count, const Tensor& logits) {
    const Tensor normed = head.normed.rows(begin, count);
    const Tensor losses = t.losses.rows(begin, count);
    make_logits(ops, logits, normed, head);
    Tensor capped;
    if (head.cap > 0) {
      capped = head.capped.reshape({head.capped.count()}).rows(0, logits.count());
      ops.convert(capped, flat(logits));
    }
    ops.classifier(logits, losses, flat(t.targets).rows(begin, count), scale);
    if (head.cap > 0) ops.cap_backward(flat(logits), flat(logits), capped, head.cap);
    if (head.factor != 1) ops.scale(logits, logits, head.factor);
    ops.matmul(head.dnormed.rows(begin, count), logits, head.weight, {});
    if (is_trained(head.weight_gradient))
      ops.matmul(head.weight_gradient, logits, normed,
                 {.transpose_a = true, .accumulate = adds(t, begin)});
    if (!is_trained(head.bias_gradient)) return;
    if (!adds(t, begin)) ops.fill(head.bias_gradient, 0.0f);
    ops.bias_backward(head.bias_gradient, logits);
  });
}

void compute_losses(Ops& ops, const UnitTensors& t, const HeadTensors& head) {
  for_pieces(head, [&](size_t begin, size_t count, const Tensor& logits) {
    make_logits(ops, logits, head.normed.rows(begin, count), head);
    ops.classifier_loss(t.losses.rows(begin, count), logits, flat(t.targets).rows(begin, count));
  });
}

void compute_last_logits(Ops& ops, const UnitTensors& t, const HeadTensors& head) {
  const size_t positions = t.input.shape[1];
  for (size_t row = 0; row < t.input.shape[0]; ++row)
    make_logits(ops, t.output.rows(row, 1), head.normed.rows((row + 1) * positions - 1, 1), head);
}

}  // namespace gxp

#include "lib/model/token_losses.h"

#include <algorithm>

#include "lib/model/views.h"

namespace gxp {
namespace {

// Calls body(first token, tokens, logits) for each piece of tokens whose logits fit in `scratch`.
template <class Body>
void for_pieces(const Tensor& scratch, size_t vocabulary, size_t tokens, const Body& body) {
  const size_t most = scratch.count() / vocabulary;
  const Tensor pieces = scratch.reshape({most, vocabulary});
  for (size_t begin = 0; begin < tokens; begin += most) {
    const size_t count = std::min(most, tokens - begin);
    body(begin, count, pieces.rows(0, count));
  }
}

}  // namespace

void differentiate_losses(Ops& ops, const UnitTensors& t, const HeadMatrix& head,
                          const Tensor& normed, const Tensor& dnormed, const Tensor& logits,
                          const LossOptions& options) {
  for_pieces(logits, head.weight.shape[0], normed.shape[0],
             [&](size_t begin, size_t count, const Tensor& some) {
               const Tensor piece = normed.rows(begin, count);
               ops.matmul(some, piece, head.weight, {.transpose_b = true});
               ops.classifier(some, t.losses.rows(begin, count), flat(t.targets).rows(begin, count),
                              options.scale);
               ops.matmul(dnormed.rows(begin, count), some, head.weight, {});
               if (is_trained(head.gradient))
                 ops.matmul(head.gradient, some, piece,
                            {.transpose_a = true, .accumulate = options.accumulate || begin > 0});
             });
}

void compute_losses(Ops& ops, const UnitTensors& t, const HeadMatrix& head, const Tensor& normed,
                    const Tensor& logits) {
  for_pieces(logits, head.weight.shape[0], normed.shape[0],
             [&](size_t begin, size_t count, const Tensor& some) {
               ops.matmul(some, normed.rows(begin, count), head.weight, {.transpose_b = true});
               ops.classifier_loss(t.losses.rows(begin, count), some,
                                   flat(t.targets).rows(begin, count));
             });
}

void compute_last_logits(Ops& ops, const UnitTensors& t, const HeadMatrix& head,
                         const Tensor& normed) {
  const size_t positions = t.input.shape[1];
  for (size_t row = 0; row < t.input.shape[0]; ++row) {
    ops.matmul(t.output.rows(row, 1), normed.rows((row + 1) * positions - 1, 1), head.weight,
               {.transpose_b = true});
  }
}

}  // namespace gxp

// Arithmetic on tensors: one page per operation, one implementation per backend (kernels/cpu,
// kernels/cuda). Letters: B rows of a batch, T positions, C channels, H heads, D = C / H, V
// vocabulary, N = B * T tokens, M, K matrix sizes.
//
// For every operation:
//   Shapes     are asserted; a wrong one is a bug of the caller.
//   DTypes     f32 unless said otherwise; statistics, losses and sums are as stated.
//   Threads    one at a time per Ops object; the CPU backend runs on its ThreadPool.
//   Order      sums have a fixed order for given shapes and thread count: same input, same bits.
//   Aliasing   no output overlaps an input unless the operation says so.
//   Gradients  of parameters are ADDED to their tensor (they accumulate over micro-batches and
//   uses);
//              gradients of activations are stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/reduce_op.h"
#include "lib/device/thread_pool.h"
#include "lib/tensor/tensor.h"

namespace gxp {

struct MatmulOptions {
  bool transpose_a = false;   // a is stored (K, M)
  bool transpose_b = false;   // b is stored (N, K)
  bool accumulate = false;    // out += instead of out =
  ConstTensor bias = {};      // (N), added to every row; none if empty (memory.data == nullptr)
  ConstTensor residual = {};  // (M, N), added; may be `out` itself; none if empty
};

struct AdamWStep {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;           // from 1, for the bias correction
  double gradient_scale;  // multiplied into the gradient first (clipping)
};

class Ops {
 public:
  virtual ~Ops() = default;
  [[nodiscard]] virtual std::string description() const = 0;  // "cpu avx512, 2 threads"

  // out(M, N) = op(a)(M, K) op(b)(K, N) [+ bias] [+ residual] [+ out].
  virtual void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) = 0;
  // dbias(N) += column sums of dout(M, N).
  virtual void bias_backward(Tensor dbias, ConstTensor dout) = 0;

  // Ba, Kiros & Hinton, arXiv:1607.06450; biased variance, eps inside the root.
  // out(N, C) = (x - mean) * rstd * weight + bias; mean(N), rstd(N) are outputs.
  virtual void layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x,
                                 ConstTensor weight, ConstTensor bias, float eps) = 0;
  // out as above from given statistics: what backward needs again of a forward that did not keep
  // it.
  virtual void layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                               ConstTensor weight, ConstTensor bias) = 0;
  // dx(N, C) += gradient through the norm (ADDED: dx already holds the residual path's gradient);
  // dweight(C), dbias(C) +=.
  virtual void layernorm_backward(Tensor dx, Tensor dweight, Tensor dbias, ConstTensor dout,
                                  ConstTensor x, ConstTensor mean, ConstTensor rstd,
                                  ConstTensor weight) = 0;

  // GELU, tanh form (arXiv:1606.08415). out may be x.
  virtual void gelu_forward(Tensor out, ConstTensor x) = 0;
  // One pass: activated = gelu(x) and dx = dout * gelu'(x). dx may be dout; activated may be x.
  virtual void gelu_backward(Tensor dx, Tensor activated, ConstTensor dout, ConstTensor x) = 0;

  // Causal self-attention, scores scaled by 1 / sqrt(D); tiles with online softmax (Milakov &
  // Gimelshein, arXiv:1805.02867; Dao, arXiv:2307.08691), so T x T never exists for the batch.
  // qkv(B, T, 3C): queries, keys, values of all heads side by side. out(B, T, C).
  // lse(B, H, T): log of the softmax's denominator, kept for backward.
  virtual void attention_forward(Tensor out, Tensor lse, ConstTensor qkv, int heads) = 0;
  // dqkv(B, T, 3C) is stored; scratch(B, H, T) is overwritten (row sums of dout * out).
  virtual void attention_backward(Tensor dqkv, Tensor scratch, ConstTensor dout, ConstTensor qkv,
                                  ConstTensor out, ConstTensor lse, int heads) = 0;

  // out(B, T, C) = tokens_table[tokens] + positions_table[0 .. T). tokens(B, T) i32, all below V.
  virtual void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                                 ConstTensor position_table) = 0;
  // dtoken_table(V, C) and dposition_table(P >= T, C) +=, in the tokens' order (deterministic).
  virtual void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                                  ConstTensor tokens) = 0;

  // Fused classifier: logits(N, V) become, in place, (softmax - onehot(target)) * scale.
  // losses(N) f32 = -log softmax(logits)[target]. targets(N) i32; a negative target counts as loss
  // 0, gradient 0.
  virtual void classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) = 0;
  // losses only; logits are left alone.
  virtual void classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) = 0;

  // AdamW (Loshchilov & Hutter, arXiv:1711.05101), decoupled decay first, over a flat range:
  // weights, first, second (N) f32 are updated; gradients (N) are read.
  virtual void adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
                     const AdamWStep& step) = 0;
  // Sum of squares in f64 over a fixed tree that depends on the count alone, not on the thread
  // count.
  virtual double sum_of_squares(ConstTensor x) = 0;
  // Sum in f64, the same way.
  virtual double sum(ConstTensor x) = 0;
  virtual void fill(Tensor out, float value) = 0;
};

// Runs on `pool`, which must outlive it. The instruction set (avx512, avx2 or the compiler's
// baseline) is chosen by what this CPU has; `isa` names one instead ("": the best); throws
// kUnavailable if it is unknown or not to be had here.
std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const std::string& isa = "");

}  // namespace gxp
